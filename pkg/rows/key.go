package rows

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"
)

// Keyer reads the keys of a schema's rows.
type Keyer struct {
	schema *Schema
	codecs []Codec
}

// NewKeyer resolves the key columns of s. A table without a key is one key: its name.
func NewKeyer(s *Schema) *Keyer {
	k := &Keyer{schema: s}
	for _, c := range s.key {
		k.codecs = append(k.codecs, s.codecs[c])
	}
	return k
}

// Schema is the schema whose keys it reads.
func (k *Keyer) Schema() *Schema { return k.schema }

// Append writes the canonical key of row i of b: the canonical cells of the key columns in key order, a
// special value by its text: a key that is infinity is not one that is -infinity, and neither is null.
// Equal keys give equal bytes in every process and release; a golden file guards it.
func (k *Keyer) Append(dst []byte, b *Batch, i int) []byte {
	if len(k.codecs) == 0 {
		return append(dst, k.schema.table...)
	}
	for at, c := range k.codecs {
		column := k.schema.key[at]
		if b.special != nil && b.columns[column].IsNull(i) {
			if text, ok := b.SpecialText(column, i); ok {
				dst = sized(append(dst, tagSpecial), text)
				continue
			}
		}
		dst = c.AppendCanonical(dst, b.columns[column], i)
	}
	return dst
}

// Hashes appends the key hash of every row of b to dst.
func (k *Keyer) Hashes(dst []uint64, b *Batch) []uint64 {
	if len(k.codecs) == 1 && b.n > 0 {
		switch col := b.columns[k.schema.key[0]].(type) {
		case *array.Int32:
			if col.NullN() == 0 {
				return hashInts(dst, col.Int32Values())
			}
		case *array.Int64:
			if col.NullN() == 0 {
				return hashInts(dst, col.Int64Values())
			}
		}
	}
	if len(k.codecs) == 0 {
		h := HashKey([]byte(k.schema.table))
		for range b.n {
			dst = append(dst, h)
		}
		return dst
	}
	var key []byte
	for i := range b.n {
		key = k.Append(key[:0], b, i)
		dst = append(dst, xxh3.Hash(key))
	}
	return dst
}

// hashInts is the loop for the commonest keys, written out; Append is its specification.
func hashInts[T int32 | int64](dst []uint64, values []T) []uint64 {
	key := [9]byte{tagValue}
	for _, v := range values {
		binary.BigEndian.PutUint64(key[1:], uint64(int64(v)))
		dst = append(dst, xxh3.Hash(key[:]))
	}
	return dst
}
