package halves

// Memory is the room of chunks whose rows have left, for the chunks to come: a copier and its reader pass it between them.
type Memory chan []byte

// NewMemory keeps the room of two chunks, which is what a reader and its copier have at once.
func NewMemory() Memory { return make(Memory, 2) }

// Give takes back the room of a chunk; what there is too much of is let go. Without room it does nothing.
func (m Memory) Give(room []byte) {
	if cap(room) == 0 {
		return
	}
	select {
	case m <- room:
	default:
	}
}

// Take returns room for the rows of a chunk, empty; nil when there is none.
func (m Memory) Take() []byte {
	select {
	case b := <-m:
		return b[:0]
	default:
		return nil
	}
}

// Forget lets go of what would be kept for chunks that do not come.
func (m Memory) Forget() {
	for m.Take() != nil {
	}
}
