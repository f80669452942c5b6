package cdcmysql

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
)

// boundsAtOnce is after how many bounds the assigner hears of them, so that readers can begin.
const boundsAtOnce = 8

// settlePause is the pause between two looks at what is visible.
const settlePause = 5 * time.Millisecond

// planner answers the assigner's questions with SQL.
type planner struct {
	*opened

	sql    sql
	family position.Type
	tables map[cdc.TableID]*capturedTable
	plans  map[cdc.TableID]*scanPlan
}

var _ halves.Planner = (*planner)(nil)

func newPlanner(o *opened, state *enumeratorState) *planner {
	return &planner{
		opened: o, sql: sql{target: o.target}, family: state.Start.Family, tables: byID(state.Tables), plans: make(map[cdc.TableID]*scanPlan),
	}
}

// Reset implements halves.Planner.
func (p *planner) Reset(context.Context) { p.sql.close() }

// Settle implements halves.Planner. A chunk of MySQL waits itself until everything is visible that was logged before it begins.
// A snapshot of MariaDB may lack what was logged a moment ago, and the log may begin behind that.
func (p *planner) Settle(ctx context.Context) error {
	if p.family != position.MariaDBGTID {
		return nil
	}
	session, err := p.sql.open(ctx)
	if err != nil {
		return err
	}
	logged, err := session.MariaLogged(ctx)
	if err != nil {
		return err
	}
	defer p.target.Wait("a snapshot that has every commit of the log")()
	for {
		seen, err := session.MariaSnapshot(ctx)
		if err != nil {
			return err
		}
		if err := session.Exec(ctx, "ROLLBACK"); err != nil {
			return err
		}
		if seen.ContainsSet(logged) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settlePause):
		}
	}
}

// Bounds implements halves.Planner.
func (p *planner) Bounds(ctx context.Context, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error) {
	bounds, last, err = p.bounds(ctx, q)
	if fault.CodeOf(err) != fault.MYSchemaChanged {
		return bounds, last, err
	}
	if err = p.misfit(ctx, &p.sql, p.tables[q.Table], err); fault.CodeOf(err) == fault.MYCopyAltered {
		err = fault.Mark(fault.Bug, err) // asking again would not mend it
	}
	return nil, false, err
}

// bounds walks along the key's index: the row so many behind the last bound, and again. Where keys are whole numbers and at least
// every second one is taken, most of the walk is spared: the server is asked for the first key from so many numbers on, between
// which and the bound there are no more rows than that.
func (p *planner) bounds(ctx context.Context, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error) {
	t := p.tables[q.Table]
	if t == nil {
		return nil, false, fmt.Errorf("table %d is not captured: %w", q.Table, fault.Bug)
	}
	plan := p.plans[q.Table]
	if plan == nil {
		if plan, err = p.bindScan(ctx, &p.sql, t); err != nil {
			return nil, false, err
		}
		p.plans[q.Table] = plan
	}
	after, dense := q.After, false
	for len(bounds) < min(q.Max, boundsAtOnce) {
		var next cdc.Key
		if from, ok := plan.numbered(after, q.Rows); dense && ok {
			// By MIN: for one row in order the servers rather read the key from its beginning than look a place up in it.
			name := plan.keyColumns()[0]
			next, err = p.first(ctx, plan, "SELECT MIN("+name+") FROM "+t.Quoted()+" WHERE "+name+" >= "+from)
		} else {
			next, err = p.walk(ctx, plan, after, q.Rows)
			dense = plan.dense(after, next, q.Rows)
		}
		switch {
		case err != nil:
			return nil, false, err
		case next == nil:
			return bounds, true, nil
		}
		bounds, after = append(bounds, next), next
	}
	return bounds, false, nil
}

// walk is the key of the row so many behind a key; nil when there is none.
func (p *planner) walk(ctx context.Context, plan *scanPlan, after cdc.Key, behind int64) (cdc.Key, error) {
	where, err := plan.within(after, nil)
	if err != nil {
		return nil, err
	}
	names := plan.keyColumns()
	exprs := make([]string, len(names))
	for i, at := range plan.key {
		exprs[i] = plan.codecs[at].Expr(names[i])
	}
	return p.first(ctx, plan, fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT 1 OFFSET %d",
		strings.Join(exprs, ", "), plan.captured.Quoted(), where, strings.Join(names, ", "), behind))
}

// first is the key that a statement selects; nil when that is no row, or null.
func (p *planner) first(ctx context.Context, plan *scanPlan, sql string) (key cdc.Key, err error) {
	session, err := p.sql.open(ctx)
	if err != nil {
		return nil, err
	}
	err = session.Query(ctx, sql, func(cells [][]byte) error {
		if cells[0] == nil {
			return nil
		}
		key = make(cdc.Key, len(cells))
		for i, c := range cells {
			var err error
			if key[i], err = plan.codecs[plan.key[i]].Key([]byte{}, c, mycodec.Text); err != nil {
				return err
			}
		}
		return nil
	})
	return key, err
}

// number is a key that is one whole number.
func (p *scanPlan) number(key cdc.Key) (*big.Int, bool) {
	if len(p.key) != 1 || key == nil {
		return nil, false
	}
	column := p.columns[p.key[0]]
	// A YEAR is none: the servers take small numbers for years of this century.
	if k := column.Type.Kind; k < rows.KindInt8 || k > rows.KindUint64 || strings.HasPrefix(column.Source, "year") {
		return nil, false
	}
	text, err := p.literals(key)
	if err != nil {
		return nil, false
	}
	return new(big.Int).SetString(text[0], 10)
}

// numbered is the number so many behind a key, as SQL.
func (p *scanPlan) numbered(key cdc.Key, behind int64) (string, bool) {
	n, ok := p.number(key)
	if !ok {
		return "", false
	}
	return n.Add(n, big.NewInt(behind)).String(), true
}

// dense reports whether so many rows lie within twice as many numbers.
func (p *scanPlan) dense(low, high cdc.Key, count int64) bool {
	from, ok := p.number(low)
	to, also := p.number(high)
	return ok && also && to.Sub(to, from).Cmp(big.NewInt(2*count)) <= 0
}
