package cdcmysql

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// snapshot opens a snapshot and returns its mark, and the changes of the table that it may or may not see. For a table that is
// read as a whole there are none: which of its rows a change means cannot be told.
func (c *copier) snapshot(ctx context.Context, plan *scanPlan) (core.Point, []step, error) {
	session, err := c.sql.open(ctx)
	if err != nil {
		return core.Point{}, nil, err
	}
	if c.source.Start.Family == position.MariaDBGTID {
		mark := core.Point{Family: position.MariaDBGTID}
		mark.Maria, err = session.MariaSnapshot(ctx)
		return mark, nil, err
	}
	if err := c.follow(ctx, session); err != nil {
		return core.Point{}, nil, err
	}
	defer c.follower.end()
	defer c.progress.waits(plan.name, "")
	var quiet core.Quiet
	for {
		from, err := c.follower.begin(ctx, plan.captured)
		if err != nil {
			return core.Point{}, nil, err
		}
		if err := c.awaitVisible(ctx, session, &from); err != nil {
			return core.Point{}, nil, err
		}
		if err := session.Exec(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
			return core.Point{}, nil, err
		}
		at, err := session.Status(ctx, c.facts)
		if err != nil {
			return core.Point{}, nil, err
		}
		if err := c.follower.await(ctx, at); err != nil {
			return core.Point{}, nil, err
		}
		mark, steps := c.follower.window()
		again := plan.captured.Whole && len(steps) > 0
		for _, s := range steps {
			again = again || s.kind == stepOutcome || (s.kind != stepRows && slices.ContainsFunc(s.tables, func(t *capturedTable) bool { return t.ID == plan.captured.ID }))
		}
		if !again {
			return mark, steps, nil
		}
		if err := session.Exec(ctx, "ROLLBACK"); err != nil {
			return core.Point{}, nil, err
		}
		if err := c.pauseFor(ctx, &quiet, plan.name); err != nil {
			return core.Point{}, nil, err
		}
	}
}

// pauseFor waits before the next try for a snapshot of a table that somebody writes to; it is an error when there were enough.
func (c *copier) pauseFor(ctx context.Context, quiet *core.Quiet, table core.Name) error {
	pause, tell, over := quiet.Busy(time.Now(), rand.Float64())
	switch {
	case over:
		return fault.New(fault.MYKeylessBusy, c.where, fmt.Sprintf("table %s was written to in each of %d moments since %s", table, quiet.Tries(),
			quiet.Began().UTC().Format(time.RFC3339)), "table", table.String())
	case tell:
		c.progress.waits(table, fmt.Sprintf("waits since %s for a moment in which nobody writes to it: without a key it is read by one statement",
			quiet.Began().UTC().Format(time.RFC3339)))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// awaitVisible waits until everything before a point of the follower is visible. A follower that has ended was of a server that has
// ended, or of another one: what its log had may never become visible.
func (c *copier) awaitVisible(ctx context.Context, s *server.Session, p *core.Point) error {
	if p.Family == position.MySQLBinlog {
		return s.AwaitCommits(ctx, c.follower.ended)
	}
	return s.AwaitExecuted(ctx, p.GTIDs, c.follower.ended)
}

// scan reads the rows of a chunk in the snapshot that is open, without those that have changed. It returns the chunk or, of a
// table that is read as a whole and has more than a segment, the last piece: the others are handed over.
func (c *copier) scan(ctx context.Context, got *copied, changed *changes) (*copied, error) {
	session, err := c.sql.open(ctx)
	if err != nil {
		return nil, err
	}
	p := got.plan
	where, err := p.within(got.Low, got.High)
	if err != nil {
		return nil, err
	}
	limit, order := cdc.DefaultChunkBytes, ""
	if p.captured.Whole {
		limit = c.segment
	} else {
		order = " ORDER BY " + strings.Join(p.keyColumns(), ", ")
	}
	key := make(cdc.Key, len(p.key))
	err = session.Query(ctx, "SELECT "+p.list()+" FROM "+p.captured.Quoted()+where+order, func(cells [][]byte) error {
		full := len(got.data) >= limit && got.count > 0
		if full && p.captured.Whole {
			if got, err = c.pass(ctx, got); err != nil {
				return err
			}
			full = false
		}
		if full || len(changed.last) > 0 {
			if key, err = p.keyOf(key, cells, mycodec.Text); err != nil {
				return fault.Wrap(err, fault.MYDecode, c.where, err.Error())
			}
		}
		if full {
			got.cut = key.Clone()
			return errFull
		}
		if len(changed.last) > 0 {
			if _, ok := changed.last[keyName(key)]; ok {
				return nil
			}
		}
		if err := p.cover(cells); err != nil {
			return fault.Wrap(err, fault.MYDecode, c.where, err.Error())
		}
		got.count++
		got.data = appendRow(got.data, cells)
		return nil
	})
	switch {
	case errors.Is(err, errFull):
		c.view = nil
		c.sql.close() // the statement cannot be ended otherwise
		return got, nil
	case err != nil:
		return nil, err
	}
	if got.step == halves.Fill {
		got.step = halves.Filled
	}
	if p.captured.Whole {
		return got, session.Exec(ctx, "COMMIT")
	}
	return got, nil
}

func appendRow(dst []byte, cells [][]byte) []byte {
	for _, c := range cells {
		if c == nil {
			dst = append(dst, 0)
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(len(c))+1)
		dst = append(dst, c...)
	}
	return dst
}

// next takes the cells of the next row into row.
func (c *copied) next(row [][]byte) {
	for i := range row {
		n, used := binary.Uvarint(c.data)
		c.data = c.data[used:]
		if n == 0 {
			row[i] = nil
			continue
		}
		row[i], c.data = c.data[:n-1:n-1], c.data[n-1:]
	}
}
