package cdcpostgres

import "weir.dev/weir/services/cdc-postgres/internal/pgrepl"

// item is one step of the log as it arrived: a chunk with the tables its Relation messages describe, in order.
type item struct {
	session int // of the link, that received it
	chunk   pgrepl.Chunk
	tables  []*described
	located []located // where keys lie that only the server can order
	// asText says that nothing follows: the log must be sent again from the reader's position in the text format.
	asText bool
}

// size is what the item counts in the queue.
func (it *item) size() int { return len(it.chunk.Data) }
