package cdc

import "fmt"

// LogSplit is the log, as it is handed to its reader.
type LogSplit struct {
	// Log is the state to begin from, as the adapter gave it to [Share.State]. Nil is the beginning of the log, or for a
	// reader that has paused, where it stands.
	Log []byte
	// Only asks the reader to end with the catch-up: it is drained when the filter is done.
	Only bool
	// Tables are those whose changes count; changes of others are dropped.
	Tables []TableSplit
}

// TableSplit is one table of the log.
type TableSplit struct {
	ID TableID
	// Chunks in the order of their keys: they cover every key, each once. None for a table of which every change counts.
	Chunks []Finished
}

// newLogSplit sorts the chunks of the segments to their tables. An error means that a table is not covered exactly.
func newLogSplit(m followMessage, segments [][]byte) (*LogSplit, error) {
	at := make(map[TableID]int, len(m.tables))
	chunks := make([][]Finished, len(m.tables))
	for i, t := range m.tables {
		at[t.table] = i
	}
	for _, data := range segments {
		s, err := decodeSegment(data)
		if err != nil {
			return nil, err
		}
		for _, f := range s {
			if i, ok := at[f.Table]; ok && !m.tables[i].pure && f.Number >= m.tables[i].first {
				chunks[i] = append(chunks[i], f)
			}
		}
	}
	split := &LogSplit{Log: m.log, Only: m.only}
	for i, t := range m.tables {
		s := TableSplit{ID: t.table}
		if !t.pure {
			var err error
			if s.Chunks, err = chain(chunks[i]); err != nil {
				return nil, fmt.Errorf("table %d: %w", t.table, err)
			}
		}
		split.Tables = append(split.Tables, s)
	}
	return split, nil
}

// chain orders chunks by following their bounds from the one without a lower bound to the one without an upper. It needs no
// order of keys, and it proves that nothing is missing and nothing is there twice.
func chain(chunks []Finished) ([]Finished, error) {
	var buf []byte
	text := func(k Key) string { buf = k.append(buf[:0]); return string(buf) }
	first, byLow := -1, make(map[string]int, len(chunks))
	for i, c := range chunks {
		if c.Low == nil {
			if first >= 0 {
				return nil, fmt.Errorf("%w: two first chunks, %s and %s", ErrMalformed, chunks[first].ChunkID, c.ChunkID)
			}
			first = i
			continue
		}
		k := text(c.Low)
		if o, twice := byLow[k]; twice {
			return nil, fmt.Errorf("%w: chunks %s and %s begin at one key", ErrMalformed, chunks[o].ChunkID, c.ChunkID)
		}
		byLow[k] = i
	}
	ordered := make([]Finished, 0, len(chunks))
	for i := first; ; {
		if i < 0 || len(ordered) == len(chunks) {
			return nil, fmt.Errorf("%w: %d chunks do not meet", ErrMalformed, len(chunks))
		}
		c := chunks[i]
		ordered = append(ordered, c)
		if c.High == nil {
			break
		}
		next, ok := byLow[text(c.High)]
		if !ok {
			return nil, fmt.Errorf("%w: nothing begins where chunk %s ends", ErrMalformed, c.ChunkID)
		}
		i = next
	}
	if len(ordered) != len(chunks) {
		return nil, fmt.Errorf("%w: %d of %d chunks are beside the others", ErrMalformed, len(chunks)-len(ordered), len(chunks))
	}
	return ordered, nil
}
