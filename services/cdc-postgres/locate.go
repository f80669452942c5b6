package cdcpostgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// located is where the keys of one change lie: the numbers of their chunks, from 0, or unlocated.
type located struct {
	at       int // of the message in its chunk of the log
	old, new int32
}

const unlocated = -1

// locator asks the server in which chunks the keys of changes lie, where only the server knows the order of keys. It asks
// once per table for all changes that arrived together, and only for those of transactions that some chunks have seen and
// others have not. It belongs to the goroutine that receives the log.
type locator struct {
	tables map[uint32]*locatable
	xid    uint32 // of the open transaction
	row    pgoutput.Change
}

// locatable is a table whose keys are to be located.
type locatable struct {
	*capturedTable
	bounds [][]string // by key column, the lower bounds of the chunks but the first, in order
	marks  []*core.Mark
	known  *described
	sql    string

	asked    bool // last is what the marks say of xid
	last     uint32
	disputed bool

	keys  [][]string // by key column, of the present chunk of the log
	heads []int32    // for each key, where its answer goes: twice the index of its located, plus one for a new key
}

// newLocator prepares for the tables of a split that need it; it is nil when none does.
func newLocator(split *cdc.LogSplit, tables []capturedTable) (*locator, error) {
	l := &locator{tables: make(map[uint32]*locatable)}
	for _, s := range split.Tables {
		i := slices.IndexFunc(tables, func(t capturedTable) bool { return t.id() == s.ID })
		if i < 0 || len(s.Chunks) < 2 || core.KeyOrder(tables[i].forms()) != nil {
			continue
		}
		t := &locatable{capturedTable: &tables[i], bounds: make([][]string, len(tables[i].Key)), keys: make([][]string, len(tables[i].Key))}
		seen := make(map[string]bool)
		for n, c := range s.Chunks {
			if !seen[string(c.Mark)] {
				seen[string(c.Mark)] = true
				m, err := core.ParseMark(c.Mark)
				if err != nil {
					return nil, err
				}
				t.marks = append(t.marks, m)
			}
			if n == 0 {
				continue
			}
			for k, cell := range c.Low {
				text, err := t.Key[k].Form.Text(cell)
				if err != nil {
					return nil, err
				}
				t.bounds[k] = append(t.bounds[k], string(text))
			}
		}
		l.tables[t.OID] = t
	}
	if len(l.tables) == 0 {
		return nil, nil
	}
	return l, nil
}

// chunk locates the changes of a chunk of the log. relations are what its Relation messages describe, in order.
func (l *locator) chunk(ctx context.Context, conn *pgx.Conn, c pgrepl.Chunk, relations []*described) ([]located, error) {
	var found []located
	for at := 0; at < len(c.Data); at += int(binary.BigEndian.Uint32(c.Data[at+1:])) + 1 {
		if c.Data[at+5] != 'w' {
			continue
		}
		body := c.Message(at)
		if len(body) == 0 {
			continue // the reader says what is wrong with it
		}
		switch body[0] {
		case pgoutput.KindBegin:
			if m, err := pgoutput.ParseBegin(body); err == nil {
				l.xid = m.Xid
			}
		case pgoutput.KindRelation:
			if t := l.tables[relations[0].relation.OID]; t != nil {
				t.known = relations[0]
			}
			relations = relations[1:]
		case pgoutput.KindInsert, pgoutput.KindUpdate, pgoutput.KindDelete:
			found = l.change(found, at, body)
		}
	}
	for _, t := range l.tables {
		if len(t.heads) == 0 {
			continue
		}
		if err := t.ask(ctx, conn, found); err != nil {
			return nil, fmt.Errorf("locate keys of table %s: %w", t, err)
		}
	}
	return found, nil
}

// change notes the keys of a change that are to be located. What cannot be read is left for the reader to complain of.
func (l *locator) change(found []located, at int, body []byte) []located {
	if len(body) < 5 {
		return found
	}
	t := l.tables[binary.BigEndian.Uint32(body[1:])]
	if t == nil || t.known == nil || t.known.err != nil || len(t.known.key) != len(t.Key) || !t.isDisputed(l.xid) {
		return found
	}
	row := &l.row
	if row.Parse(body) != nil {
		return found
	}
	width := t.known.width
	if len(row.New) == width {
		row.New = t.known.kept(row.New)
	}
	if len(row.Old) == width {
		row.Old = t.known.kept(row.Old)
	}
	width = len(t.known.columns)
	place := located{at: at, old: unlocated, new: unlocated}
	n := int32(len(found))
	switch row.Kind {
	case pgoutput.KindInsert:
		if len(row.New) == width {
			t.note(row.New, 2*n+1)
		}
	case pgoutput.KindDelete:
		if len(row.Old) == width {
			t.note(row.Old, 2*n)
		}
	default:
		if len(row.New) != width || (row.OldKind != pgoutput.OldNone && len(row.Old) != width) {
			return found
		}
		if core.Update(row, t.known.key).KeyChanged {
			t.note(row.Old, 2*n)
		}
		t.note(row.New, 2*n+1)
	}
	return append(found, place)
}

// isDisputed reports whether some chunks hold a transaction and others do not.
func (t *locatable) isDisputed(xid uint32) bool {
	if t.asked && t.last == xid {
		return t.disputed
	}
	first := t.marks[0].Contains(xid)
	t.asked, t.last = true, xid
	t.disputed = slices.ContainsFunc(t.marks[1:], func(m *core.Mark) bool { return m.Contains(xid) != first })
	return t.disputed
}

// note takes the key of a row, in the text form in which the log is read while it catches up.
func (t *locatable) note(cells []pgoutput.Cell, head int32) {
	for k, i := range t.known.key {
		t.keys[k] = append(t.keys[k], string(cells[i].Data))
	}
	t.heads = append(t.heads, head)
}

// ask has the server locate the keys noted, under the columns' own types and collations.
func (t *locatable) ask(ctx context.Context, conn *pgx.Conn, found []located) error {
	if t.sql == "" {
		if err := t.prepare(ctx, conn); err != nil {
			return err
		}
	}
	args := make([]any, 0, 2*len(t.Key))
	for k := range t.Key {
		args = append(args, t.keys[k], t.bounds[k])
	}
	rows, err := conn.Query(ctx, t.sql, args...)
	if err != nil {
		return err
	}
	var chunk int32
	next := 0
	_, err = pgx.ForEachRow(rows, []any{&chunk}, func() error {
		if next == len(t.heads) {
			return fmt.Errorf("more places than keys: %w", fault.Bug)
		}
		p := &found[t.heads[next]/2]
		if t.heads[next]%2 == 0 {
			p.old = chunk
		} else {
			p.new = chunk
		}
		next++
		return nil
	})
	if err == nil && next < len(t.heads) {
		err = fmt.Errorf("%d places for %d keys: %w", next, len(t.heads), fault.Bug)
	}
	t.heads = t.heads[:0]
	for k := range t.keys {
		t.keys[k] = t.keys[k][:0]
	}
	return err
}

// prepare writes the question: for each key, the number of bounds at or below it. One column is sought by halves.
func (t *locatable) prepare(ctx context.Context, conn *pgx.Conn) error {
	types := make([]string, len(t.Key))
	collations := make([]string, len(t.Key))
	for k, c := range t.Key {
		err := conn.QueryRow(ctx, `
SELECT format_type(a.atttypid, a.atttypmod), coalesce(' COLLATE ' || quote_ident(n.nspname) || '.' || quote_ident(l.collname), '')
FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_namespace n ON n.oid = l.collnamespace
WHERE a.attrelid = $1 AND a.attnum = $2 AND NOT a.attisdropped`, t.OID, t.Version.NumberOf(c.Name)).Scan(&types[k], &collations[k])
		if err != nil {
			return fmt.Errorf("read the type of column %q: %w", c.Name, err)
		}
	}
	if len(t.Key) == 1 {
		t.sql = fmt.Sprintf(`
WITH b AS MATERIALIZED (SELECT $2::text[]::%[1]s[] AS bounds)
SELECT width_bucket(k.v::%[1]s%[2]s, b.bounds) FROM unnest($1::text[]) WITH ORDINALITY AS k(v, n), b ORDER BY k.n`, types[0], collations[0])
		return nil
	}
	var keys, bounds, keyNames, boundNames, typed, left, right []string
	for k := range t.Key {
		keys = append(keys, fmt.Sprintf("$%d::text[]", 2*k+1))
		bounds = append(bounds, fmt.Sprintf("$%d::text[]", 2*k+2))
		keyNames = append(keyNames, fmt.Sprintf("v%d", k))
		boundNames = append(boundNames, fmt.Sprintf("w%d", k))
		typed = append(typed, fmt.Sprintf("w%d::%s AS b%d", k, types[k], k))
		left = append(left, fmt.Sprintf("b.b%d%s", k, collations[k]))
		right = append(right, fmt.Sprintf("k.v%d::%s", k, types[k]))
	}
	t.sql = fmt.Sprintf(`
WITH b AS MATERIALIZED (SELECT %s FROM unnest(%s) AS u(%s))
SELECT (SELECT count(*) FROM b WHERE (%s) <= (%s))::int FROM unnest(%s) WITH ORDINALITY AS k(%s, n) ORDER BY k.n`,
		strings.Join(typed, ", "), strings.Join(bounds, ", "), strings.Join(boundNames, ", "),
		strings.Join(left, ", "), strings.Join(right, ", "), strings.Join(keys, ", "), strings.Join(keyNames, ", "))
	return nil
}
