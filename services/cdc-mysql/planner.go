package cdcmysql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/position"
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

// Bounds walks along the key's index: the row so many behind the last bound, and again.
func (p *planner) Bounds(ctx context.Context, q cdc.AskBounds) (bounds []cdc.Key, last bool, err error) {
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
	session, err := p.sql.open(ctx)
	if err != nil {
		return nil, false, err
	}
	names := plan.keyColumns()
	exprs := make([]string, len(names))
	for i, at := range plan.key {
		exprs[i] = plan.codecs[at].Expr(names[i])
	}
	after := q.After
	for len(bounds) < min(q.Max, boundsAtOnce) {
		where, err := plan.within(after, nil)
		if err != nil {
			return nil, false, err
		}
		var next cdc.Key
		err = session.Query(ctx, fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s LIMIT 1 OFFSET %d",
			strings.Join(exprs, ", "), t.Quoted(), where, strings.Join(names, ", "), q.Rows), func(cells [][]byte) error {
			next = make(cdc.Key, len(cells))
			for i, c := range cells {
				var err error
				if next[i], err = plan.codecs[plan.key[i]].Key([]byte{}, c, mycodec.Text); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		if next == nil {
			return bounds, true, nil
		}
		bounds, after = append(bounds, next), next
	}
	return bounds, false, nil
}
