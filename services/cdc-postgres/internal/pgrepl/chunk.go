package pgrepl

import "encoding/binary"

// Chunk is a run of whole CopyData messages, headers included, in the order of the log.
type Chunk struct {
	Data      []byte
	Relations []Relation

	spare chan<- []byte // takes Data back; nil when it is too small to be worth it
}

// Relation is the offset of a message that describes a table, and the transaction that it is sent in.
type Relation struct {
	At  int
	Xid uint32
}

// Message is the payload of the CopyData message at an offset: what follows its header and that of XLogData.
func (c Chunk) Message(at int) []byte {
	n := int(binary.BigEndian.Uint32(c.Data[at+1:])) + 1
	return c.Data[at+30 : at+n]
}

// Release gives the chunk's memory back for reading; nothing of it may be used any more. It may be called from another
// goroutine, and need not be called.
func (c Chunk) Release() {
	if c.spare == nil {
		return
	}
	select {
	case c.spare <- c.Data[:0]:
	default:
	}
}
