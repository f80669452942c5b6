package stage

import (
	"iter"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// Dead are the rows that one commit leaves out because they have a letter, and what the register at the target is told of them: it
// knows of each letter whether a later row has changed its key, so that a replay does not undo that. The zero value is of no use.
type Dead struct {
	// Left counts rows with a letter of before, Found those that got one now.
	Left, Found uint64

	keyed bool
	// stored are the letters that an earlier try has written. Their rows stay out even if the target would take them by
	// now: a row is in one place.
	stored map[rows.TableID]map[int]bool
	// next is the index of a table's next row.
	next map[rows.TableID]int
	// open are keys with letters of older epochs, own those of this one; newest is the last row of this commit that changes
	// one of them.
	open, own OpenKeys
	newest    map[rows.TableID]map[string]int
	lines     []Line
}

// OpenKeys are the keys with a letter that no later change has overtaken, by table.
type OpenKeys map[rows.TableID]map[string]bool

// Add adds a key.
func (o OpenKeys) Add(table rows.TableID, key string) {
	if o[table] == nil {
		o[table] = make(map[string]bool)
	}
	o[table][key] = true
}

// Line is the register's line of one letter.
type Line struct {
	Table rows.TableID
	Index int
	Key   *string // nil where rows have no key or are all kept
	// Overtaken says that a later row of the commit has changed the key.
	Overtaken bool
}

// NewDead begins a commit that has these letters already. open, as the register has it, is kept up to date by [Dead.Registered].
func NewDead(ids []sink.LetterID, mode spec.Mode, open OpenKeys) *Dead {
	d := &Dead{
		keyed: mode == spec.Upsert, open: open, own: make(OpenKeys), newest: make(map[rows.TableID]map[string]int),
		stored: make(map[rows.TableID]map[int]bool), next: make(map[rows.TableID]int),
	}
	for _, id := range ids {
		if d.stored[id.Table] == nil {
			d.stored[id.Table] = make(map[int]bool)
		}
		d.stored[id.Table][id.Index] = true
	}
	return d
}

// Without numbers the rows of a batch and leaves out those that have a letter. s is the table's schema.
func (d *Dead) Without(s *rows.Schema, b *rows.Batch) (batches []*rows.Batch, first []int) {
	table := s.Table()
	base, n := d.next[table], b.NumRows()
	d.next[table] += n
	stored := d.stored[table]
	if len(stored) == 0 {
		return []*rows.Batch{b}, []int{base}
	}
	from := 0
	take := func(to int) {
		if to > from {
			batches, first = append(batches, b.Slice(from, to)), append(first, base+from)
		}
		from = to + 1
	}
	for i := range n {
		if stored[base+i] {
			take(i)
			d.Left++
			d.line(s, b, i, base+i)
		}
	}
	take(n)
	return batches, first
}

// Bury notes the letter that was put for a row, which has an index among all rows of the table.
func (d *Dead) Bury(s *rows.Schema, b *rows.Batch, row, index int) {
	d.Found++
	d.line(s, b, row, index)
}

// line makes the line of a row and marks its key.
func (d *Dead) line(s *rows.Schema, b *rows.Batch, row, index int) {
	at := Line{Table: s.Table(), Index: index}
	if d.keyed {
		for i, key := range KeysOf(s, b, row) {
			if i == 0 {
				at.Key = &key
				d.own.Add(at.Table, key)
			}
			d.touch(at.Table, key, index)
		}
	}
	d.lines = append(d.lines, at)
}

// touch notes that a row of this commit changes a key, or would have.
func (d *Dead) touch(table rows.TableID, key string, index int) {
	if d.newest[table] == nil {
		d.newest[table] = make(map[string]int)
	}
	if was, ok := d.newest[table][key]; !ok || index > was {
		d.newest[table][key] = index
	}
}

// Watches reports whether changes of the table's rows matter to any letter: then each has to be told to [Dead.Change].
func (d *Dead) Watches(table rows.TableID) bool {
	return d.keyed && (len(d.open[table]) > 0 || len(d.own[table]) > 0)
}

// Change notes a row that is applied and changes these keys. asked keys are noted whether or not they have a letter.
func (d *Dead) Change(table rows.TableID, keys []string, index int, asked map[string]bool) {
	for _, key := range keys {
		if d.open[table][key] || d.own[table][key] || asked[key] {
			d.touch(table, key, index)
		}
	}
}

// Overtaken yields the keys, by table, of letters of older epochs that a row of this commit has changed.
func (d *Dead) Overtaken() iter.Seq2[rows.TableID, []string] {
	return func(yield func(rows.TableID, []string) bool) {
		for table, newest := range d.newest {
			var keys []string
			for key := range newest {
				if d.open[table][key] {
					keys = append(keys, key)
				}
			}
			if len(keys) > 0 && !yield(table, keys) {
				return
			}
		}
	}
}

// Lines are those of this commit's letters.
func (d *Dead) Lines() []Line {
	for i, at := range d.lines {
		d.lines[i].Overtaken = at.Key != nil && d.newest[at.Table][*at.Key] > at.Index
	}
	return d.lines
}

// Registered brings what is known of the register up to this commit, which went through and began with these truncates.
func (d *Dead) Registered(truncates []rows.TableID) {
	for _, table := range truncates {
		delete(d.open, table)
	}
	for table, newest := range d.newest {
		for key := range newest {
			delete(d.open[table], key)
		}
	}
	for _, at := range d.Lines() {
		if at.Key != nil && !at.Overtaken {
			d.open.Add(at.Table, *at.Key)
		}
	}
}
