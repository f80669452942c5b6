package core

import (
	"slices"
	"testing"

	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
)

func relation(identity pgoutput.Identity, marked string, names ...string) *pgoutput.Relation {
	r := &pgoutput.Relation{Identity: identity}
	for i, n := range names {
		r.Columns = append(r.Columns, pgoutput.RelationColumn{Name: n, Key: marked[i] == 'k'})
	}
	return r
}

func TestKeyOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		relation          *pgoutput.Relation
		primary, identity []string
		want              []int
	}{
		"order of the primary key": {relation(pgoutput.IdentityDefault, "k-k", "a", "b", "c"), []string{"c", "a"}, nil, []int{2, 0}},
		"the log knows better":     {relation(pgoutput.IdentityDefault, "k--", "a", "b", "c"), []string{"b", "c"}, nil, []int{0}},
		"another column by now":    {relation(pgoutput.IdentityDefault, "k--", "a", "b", "c"), []string{"b"}, nil, []int{0}},
		"no key":                   {relation(pgoutput.IdentityDefault, "--", "a", "b"), nil, nil, nil},
		"index":                    {relation(pgoutput.IdentityIndex, "-kk", "a", "b", "c"), []string{"a"}, []string{"c", "b"}, []int{2, 1}},
		"full":                     {relation(pgoutput.IdentityFull, "kkk", "a", "b", "c"), []string{"b"}, nil, []int{1}},
		"full without a key":       {relation(pgoutput.IdentityFull, "kk", "a", "b"), nil, nil, []int{}},
		"full, key column unknown": {relation(pgoutput.IdentityFull, "kk", "a", "b"), []string{"a", "z"}, nil, nil},
		"nothing":                  {relation(pgoutput.IdentityNothing, "--", "a", "b"), []string{"a"}, nil, []int{0}},
	} {
		if got := KeyOf(c.relation, c.primary, c.identity); !slices.Equal(got, c.want) {
			t.Errorf("%s: key is %v, want %v", name, got, c.want)
		}
	}
}

func cells(text string) []pgoutput.Cell {
	out := make([]pgoutput.Cell, len(text))
	for i, c := range []byte(text) {
		switch c {
		case '-':
			out[i].Kind = pgoutput.CellNull
		case '?':
			out[i].Kind = pgoutput.CellUnchanged
		default:
			out[i] = pgoutput.Cell{Kind: pgoutput.CellText, Data: []byte{c}}
		}
	}
	return out
}

func shown(cells []pgoutput.Cell) string {
	out := make([]byte, len(cells))
	for i, c := range cells {
		switch c.Kind {
		case pgoutput.CellNull:
			out[i] = '-'
		case pgoutput.CellUnchanged:
			out[i] = '?'
		default:
			out[i] = c.Data[0]
		}
	}
	return string(out)
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind          byte
		old, new, out string
		changed       bool
	}{
		"no old row":                      {pgoutput.OldNone, "", "1a?", "1a?", false},
		"key changed":                     {pgoutput.OldKey, "1--", "2a?", "2a?", true},
		"key sent but the same":           {pgoutput.OldKey, "1--", "1a?", "1a?", false},
		"key out of line":                 {pgoutput.OldKey, "1--", "?a?", "1a?", false},
		"whole row":                       {pgoutput.OldFull, "1ab", "1c?", "1cb", false},
		"whole row, key changed":          {pgoutput.OldFull, "1ab", "2a?", "2ab", true},
		"null is not unchanged":           {pgoutput.OldFull, "1ab", "1a-", "1a-", false},
		"value that was null out of line": {pgoutput.OldFull, "1a-", "1a?", "1a-", false},
	} {
		change := &pgoutput.Change{Kind: pgoutput.KindUpdate, OldKind: c.kind, Old: cells(c.old), New: cells(c.new)}
		r := Update(change, []int{0})
		if r.KeyChanged != c.changed || shown(change.New) != c.out || r.Whole != (c.kind == pgoutput.OldFull) {
			t.Errorf("%s: %+v, new row %s, want %s", name, r, shown(change.New), c.out)
		}
	}
}

// Only a committed epoch moves what the server may forget, and never back.
func TestFeedback(t *testing.T) {
	t.Parallel()
	f := NewFeedback(100)
	f.Received(500)
	if f.Flushed() != 100 || f.Written() != 500 {
		t.Errorf("flushed %s, written %s after receiving", f.Flushed(), f.Written())
	}
	if !f.Committed(Position{End: 300, Torn: Torn{Final: 400, Changes: 3}}) || f.Flushed() != 300 {
		t.Errorf("flushed %s, want the whole transactions only", f.Flushed())
	}
	if f.Committed(Position{End: 200}) || f.Flushed() != 300 {
		t.Errorf("flushed %s after an older epoch", f.Flushed())
	}
	if f.Committed(Position{End: 600}); f.Written() < f.Flushed() {
		t.Errorf("written %s is behind flushed %s", f.Written(), f.Flushed())
	}
}
