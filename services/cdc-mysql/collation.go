package cdcmysql

import "github.com/go-mysql-org/go-mysql/replication"

// vectorType is VECTOR's number in the log.
const vectorType = 242

// collations are the numbers of the columns' collations, 0 for what has none. A table map has them for character columns
// only, in their order, either all or those that differ from a default. To MySQL a VECTOR is one, to the parser it is not,
// so that every column behind one would have its neighbour's.
func collations(e *replication.TableMapEvent) []uint64 {
	all := make([]uint64, e.ColumnCount)
	differ := make(map[uint64]uint64)
	for i := 1; i+1 < len(e.DefaultCharset); i += 2 {
		differ[e.DefaultCharset[i]] = e.DefaultCharset[i+1]
	}
	nth := uint64(0)
	for i := range all {
		if !e.IsCharacterColumn(i) && e.ColumnType[i] != vectorType {
			continue
		}
		switch {
		case len(e.DefaultCharset) > 0:
			all[i] = e.DefaultCharset[0]
			if other, ok := differ[nth]; ok {
				all[i] = other
			}
		case nth < uint64(len(e.ColumnCharset)):
			all[i] = e.ColumnCharset[nth]
		}
		nth++
	}
	return all
}
