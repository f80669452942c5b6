package cdc

import "fmt"

// TableID is the number by which the adapter knows a table for the life of a job. It is never used for another table: a
// table that is dropped and made again has another number. PostgreSQL's is the OID.
type TableID uint64

// Table is what the enumerator has to know of a table to read it.
type Table struct {
	ID TableID
	// Name is for people.
	Name string
	// Keyless tables are read as one chunk.
	Keyless bool
	// RowBytes is the average size of a row as the source estimates it; 0 when it does not know.
	RowBytes int64
	// Sent says, of a table that is new to the assigner, that rows of it may be at the sinks from an earlier time: they are
	// removed there before it is copied.
	Sent bool
}

// ChunkID names a chunk. Numbers grow and are never used twice in a life; they say nothing about the order of keys.
type ChunkID struct {
	Table  TableID
	Number uint32
}

// String is table#number.
func (c ChunkID) String() string { return fmt.Sprintf("%d#%d", c.Table, c.Number) }

// Chunk is a range of keys of one table, Low included, High excluded; a nil bound is none. The chunks of a table cover every
// key there can be, each key once.
type Chunk struct {
	ChunkID
	Low, High Key
}

// Finished is a chunk whose rows were emitted, as of its mark.
type Finished struct {
	Chunk
	// Mark is the adapter's form of a [Mark].
	Mark []byte
	Rows uint64
}

// The size of a chunk, unless configured otherwise.
const (
	DefaultChunkRows  = 8192
	DefaultChunkBytes = 32 << 20
)

// ChunkRows is the number of rows of a chunk: at most rows, and as many of the average size as make bytes; at least 1.
func ChunkRows(rows, bytes, rowBytes int64) int64 {
	if rowBytes > 0 {
		rows = min(rows, bytes/rowBytes)
	}
	return max(rows, 1)
}
