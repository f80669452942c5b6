package stage

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
)

// Describe fills in what a letter says of the one row of a group: its change, its keys, and the row in staged form. s is the
// table's schema; at is the time of the letter.
func (g Group) Describe(l sink.Letter, s *rows.Schema, codec *Codec, at time.Time) (sink.Letter, error) {
	b := g.Batches[0]
	l.Table, l.Index, l.Op, l.At = s.Table(), g.First[0], b.Op(0).String(), at.UTC()
	l.Key, l.Change = keyJSON(s, b, b.Schema().Key()), b.AppendRowJSON(nil, 0)
	var err error
	if g.Kind == Move {
		l.OldKey = keyJSON(s, b, oldKey(s, b))
		l.Change, err = withoutOldKey(l.Change, s)
	}
	if err == nil {
		l.Rows, err = codec.Encode([]Part{{Kind: g.Kind, Rows: b}})
	}
	return l, err
}

// withoutOldKey keeps the table's own columns in a row of a rows.MoveSchema.
func withoutOldKey(change json.RawMessage, s *rows.Schema) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	var row map[string]json.RawMessage
	if err := json.Unmarshal(change, &all); err != nil {
		return nil, fmt.Errorf("describe a row of %s: %w", s.Table(), err)
	}
	if err := json.Unmarshal(all["row"], &row); err != nil {
		return nil, fmt.Errorf("describe a row of %s: %w", s.Table(), err)
	}
	own := make(map[string]json.RawMessage, s.NumColumns())
	for _, c := range s.Columns() {
		if cell, sent := row[c.Name]; sent {
			own[c.Name] = cell
		}
	}
	var err error
	if all["row"], err = json.Marshal(own); err != nil {
		return nil, fmt.Errorf("describe a row of %s: %w", s.Table(), err)
	}
	return json.Marshal(all)
}

// oldKey are the columns of a rows.MoveSchema that hold the key of before; none in any other batch. s is the table's schema.
func oldKey(s *rows.Schema, b *rows.Batch) []int {
	var columns []int
	for i := s.NumColumns(); i < b.Schema().NumColumns(); i++ {
		columns = append(columns, i)
	}
	return columns
}

// keyJSON writes the first row's key, which is in columns of b, under the names of the table.
func keyJSON(s *rows.Schema, b *rows.Batch, columns []int) json.RawMessage {
	out := []byte("{")
	for n, i := range columns {
		name, _ := json.Marshal(s.Column(s.Key()[n]).Name) // a text
		if n > 0 {
			out = append(out, ',')
		}
		out = append(append(out, name...), ':')
		out = rows.CodecFor(b.Schema().Column(i).Type).AppendJSON(out, b.Column(i), 0)
	}
	return append(out, '}')
}

// KeysOf are the keys that a row changes, in a form that is equal exactly for equal keys: its own, and the one it had before
// when it has moved. A table without a key has none. s is the table's schema.
func KeysOf(s *rows.Schema, b *rows.Batch, row int) []string {
	var keys []string
	for _, columns := range [][]int{s.Key(), oldKey(s, b)} {
		if len(columns) == 0 {
			continue
		}
		var key strings.Builder
		for _, i := range columns {
			key.Write(rows.CodecFor(b.Schema().Column(i).Type).AppendCanonical(nil, b.Column(i), row))
		}
		keys = append(keys, key.String())
	}
	return keys
}
