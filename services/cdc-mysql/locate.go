package cdcmysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// locate asks the server how many bounds lie at or below each key, under the collations of the key's columns. A SELECT of no
// rows gives the columns of a UNION their types.
func (p *scanPlan) locate(ctx context.Context, s *server.Session, bounds, keys []cdc.Key) ([]int, error) {
	places := make([]int, len(keys))
	if len(bounds) == 0 || len(keys) == 0 {
		return places, nil
	}
	names := p.keyColumns()
	none := " FROM " + p.captured.Quoted() + " WHERE FALSE"
	values := func(keys []cdc.Key, numbered bool) (string, error) {
		var b strings.Builder
		for i, k := range keys {
			texts, err := p.literals(k)
			if err != nil {
				return "", err
			}
			b.WriteString(" UNION ALL SELECT ")
			if numbered {
				b.WriteString(strconv.Itoa(i) + ", ")
			}
			b.WriteString(strings.Join(texts, ", "))
		}
		return b.String(), nil
	}
	b, err := values(bounds, false)
	if err != nil {
		return nil, err
	}
	k, err := values(keys, true)
	if err != nil {
		return nil, err
	}
	left, right := make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		left[i], right[i] = "weir_b."+n, "weir_k."+n
	}
	list := strings.Join(names, ", ")
	sql := fmt.Sprintf("SELECT weir_k.weir_n, (SELECT COUNT(*) FROM (SELECT %s%s%s) AS weir_b WHERE (%s) <= (%s)) FROM (SELECT 0 AS weir_n, %[1]s%[2]s%[6]s) AS weir_k",
		list, none, b, strings.Join(left, ", "), strings.Join(right, ", "), k)
	err = s.Query(ctx, sql, func(cells [][]byte) error {
		n, err1 := strconv.Atoi(string(cells[0]))
		at, err2 := strconv.Atoi(string(cells[1]))
		if err1 != nil || err2 != nil || n < 0 || n >= len(places) {
			return fmt.Errorf("locate keys: an answer that is no number")
		}
		places[n] = at
		return nil
	})
	if err != nil {
		return nil, err
	}
	return places, nil
}

// locator finds, beside the reader's loop, the chunks of logged keys whose order only the server knows.
type locator struct {
	*opened

	sql   sql
	plans map[cdc.TableID]*scanPlan

	mu     sync.Mutex
	bounds map[cdc.TableID][]cdc.Key // of the tables in their catch-up
}

func newLocator(o *opened, split *cdc.LogSplit, tables map[cdc.TableID]*capturedTable) *locator {
	l := &locator{opened: o, sql: sql{target: o.target}, plans: make(map[cdc.TableID]*scanPlan), bounds: make(map[cdc.TableID][]cdc.Key)}
	for _, s := range split.Tables {
		t := tables[s.ID]
		if t == nil || !t.Collated || len(s.Chunks) < 2 {
			continue
		}
		for _, c := range s.Chunks[1:] {
			l.bounds[s.ID] = append(l.bounds[s.ID], c.Low)
		}
	}
	return l
}

// passed ends the catch-up of tables.
func (l *locator) passed(ids []cdc.TableID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		delete(l.bounds, id)
	}
}

// locate finds the places of the keys of a step's rows; none where nobody has to know.
func (l *locator) locate(ctx context.Context, st *step) error {
	if st.rows != nil {
		for i := range st.rows.steps {
			if err := l.locate(ctx, &st.rows.steps[i]); err != nil {
				return err
			}
		}
	}
	if st.kind != stepRows || st.image == nil {
		return nil
	}
	t := st.table.captured
	l.mu.Lock()
	bounds := l.bounds[t.ID]
	l.mu.Unlock()
	if bounds == nil {
		return nil
	}
	keys, ok := keysOf(st)
	if !ok {
		return nil // the reader says what is wrong with the rows
	}
	plan := l.plans[t.ID]
	if plan == nil {
		var err error
		if plan, err = l.bindScan(ctx, &l.sql, t); err != nil {
			return err
		}
		l.plans[t.ID] = plan
	}
	if !st.table.sameKey(plan.described) {
		return nil // such rows are from before a change that every chunk has
	}
	session, err := l.sql.open(ctx)
	if err != nil {
		return err
	}
	st.places, err = plan.locate(ctx, session, bounds, keys)
	return err
}

// keysOf are the keys of a step's rows; ok is false for rows that do not read as they should.
func keysOf(st *step) (keys []cdc.Key, ok bool) {
	if st.table.err != nil {
		return nil, false
	}
	row := make([][]byte, len(st.table.widths))
	for image := st.image; len(image) > 0; {
		if image, ok = st.table.cells(image, row); !ok {
			return nil, false
		}
		key, err := st.table.keyOf(nil, row, mycodec.Log)
		if err != nil {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, true
}
