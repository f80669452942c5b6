package cdcmysql

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

const (
	// copyTries bounds how often a chunk is read again when a connection breaks; nothing of it has been emitted.
	copyTries = 5
	copyPause = 200 * time.Millisecond
	// followerIdle is after how long without a chunk the copier's own log is given up.
	followerIdle = 3 * time.Second
)

// copier reads chunks, one after the other, for a reader that emits them. It runs SQL, so the reader's loop does not.
//
// A chunk is exact although commits become visible in another order than they are logged, and later:
//
//	w0      a point of the follower, behind which changes of the table are kept
//	        wait until all that was logged before w0 is visible: until the server has executed it, or, where transactions have
//	        no names, until the commits under way have ended
//	        open a snapshot
//	p1      where the server's log is now: all that the snapshot sees was logged before it, since that comes first
//	w1 ≥ p1 a point of the follower; the mark
//	rows    those of the snapshot, with the last change of each key between w0 and w1 in its place
//
// Whether the snapshot had seen a change between w0 and w1 or not, its row is then that of w1, as all others are. MariaDB says
// exactly what a snapshot sees.
type copier struct {
	*opened
	source   *enumeratorState
	progress *progress
	tables   map[cdc.TableID]*capturedTable
	store    source.Store
	segment  int // bytes of a table that is read as a whole that are held
	work     chan cdc.Work
	tell     chan cdc.TableID // how the table is read, without reading it
	done     chan *copied
	spare    halves.Memory
	cancel   context.CancelFunc
	ended    sync.WaitGroup

	sql      sql
	facts    *server.Facts
	follower *follower
	lives    int // followers so far
	plans    map[cdc.TableID]*scanPlan
}

// copied is a chunk in memory, with its mark.
type copied struct {
	cdc.Work

	plan  *scanPlan
	data  []byte // rows in text form: per cell its length plus one, 0 for null, and its bytes
	room  []byte // where data begins; the copier's memory
	count uint64 // of them
	later [][][]byte
	mark  []byte
	bare  bool    // nothing was to be read
	cut   cdc.Key // where the reader has to stop short of the chunk's end; nil when it was read whole
	err   error

	step  halves.Step
	part  int           // of a spool being filled
	first uint64        // rows of a spool before those of this segment
	spool *halves.Spool // of a segment that was fetched; the reader's
}

func (c *copied) rows() uint64 { return c.count + uint64(len(c.later)) }

func startCopier(o *opened, source *enumeratorState, p *progress) *copier {
	ctx, cancel := context.WithCancel(context.Background())
	c := &copier{
		opened: o, source: source, progress: p, tables: byID(source.Tables), cancel: cancel, sql: sql{target: o.target},
		spare: halves.NewMemory(), store: o.cfg.Store, segment: int(o.cfg.Segment),
		work: make(chan cdc.Work, 1), tell: make(chan cdc.TableID, 1), done: make(chan *copied, 1), plans: make(map[cdc.TableID]*scanPlan),
	}
	c.ended.Go(func() { c.run(ctx) })
	return c
}

func (c *copier) close() {
	c.cancel()
	c.ended.Wait()
}

func (c *copier) run(ctx context.Context) {
	defer c.drop()
	for {
		var got *copied
		var idle <-chan time.Time
		if c.follower != nil || len(c.spare) > 0 {
			idle = time.After(followerIdle)
		}
		select {
		case <-ctx.Done():
			return
		case <-idle:
			c.drop()
			c.spare.Forget()
			continue
		case w := <-c.work:
			got = c.take(ctx, w)
		case id := <-c.tell:
			got = c.patiently(ctx, cdc.Work{Chunk: cdc.Chunk{ChunkID: cdc.ChunkID{Table: id}}}, c.describe)
		}
		if got != nil && !c.send(ctx, got) {
			return
		}
	}
}

// send hands over to the reader's loop. It reports whether ctx still lives.
func (c *copier) send(ctx context.Context, got *copied) bool {
	select {
	case c.done <- got:
		return true
	case <-ctx.Done():
		return false
	}
}

// recycle takes back the memory of a chunk, all of whose rows have left. It may be called from the reader's loop.
func (c *copier) recycle(got *copied) {
	c.spare.Give(got.room)
	got.data, got.room = nil, nil
}

// take reads a chunk, from the table or from its spool, of which it hands over every segment itself.
func (c *copier) take(ctx context.Context, w cdc.Work) *copied {
	if w.Resume == nil {
		return c.patiently(ctx, w, c.read)
	}
	if err := c.fetch(ctx, w); err != nil {
		return &copied{Work: w, err: fmt.Errorf("copy chunk %s: %w", w.ChunkID, err)}
	}
	return nil
}

// drop closes the connections.
func (c *copier) drop() {
	c.sql.close()
	c.follower.close()
	c.follower = nil
}

// patiently reads a chunk, over new connections when the old ones break.
func (c *copier) patiently(ctx context.Context, w cdc.Work, read func(context.Context, cdc.Work) (*copied, error)) *copied {
	pause := copyPause
	for try := 1; ; try++ {
		got, err := read(ctx, w)
		if err == nil {
			return got
		}
		c.drop()
		if try == copyTries || ctx.Err() != nil || fault.ClassOf(err) != fault.Transient {
			return &copied{Work: w, err: fmt.Errorf("copy chunk %s: %w", w.ChunkID, err)}
		}
		c.cfg.Logger.WarnContext(ctx, "chunk is read again", slog.String("chunk", w.String()), telemetry.Err(err))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// describe finds out how the table of a chunk is read.
func (c *copier) describe(ctx context.Context, w cdc.Work) (*copied, error) {
	plan, err := c.plan(ctx, w.Table)
	return &copied{Work: w, plan: plan, bare: true}, err
}

// plan finds how a table is read; it is bound for reading once.
func (c *copier) plan(ctx context.Context, id cdc.TableID) (*scanPlan, error) {
	if p := c.plans[id]; p != nil {
		return p, nil
	}
	t := c.tables[id]
	if t == nil {
		return nil, fmt.Errorf("table %d is not captured: %w", id, fault.Bug)
	}
	p, err := c.bindScan(ctx, &c.sql, t)
	if err != nil {
		return nil, err
	}
	if p.Schema().Fingerprint().String() != t.Fingerprint {
		return nil, columnsChanged(c.where, t)
	}
	c.plans[id] = p
	return p, nil
}

// follow starts the copier's own log where there is none.
func (c *copier) follow(ctx context.Context) error {
	if c.follower != nil {
		return nil
	}
	session, err := c.sql.open(ctx)
	if err != nil {
		return err
	}
	from := core.Point{Family: c.source.Start.Family}
	if from.Family == position.MySQLGTID {
		if from.GTIDs, err = session.Executed(ctx); err != nil {
			return err
		}
	}
	if c.facts, err = session.Facts(ctx); err != nil {
		return err
	}
	at, err := session.Status(ctx, c.facts)
	if err != nil {
		return err
	}
	if from.Family == position.MySQLBinlog {
		from.Binlog = at
	}
	c.lives++
	if c.follower, err = follow(ctx, c.opened, c.lives, c.source, from); err != nil {
		return err
	}
	return c.follower.await(ctx, at)
}

// errFull ends a statement whose rows have become too many bytes.
var errFull = errors.New("chunk is full")

// read reads a chunk and its mark.
func (c *copier) read(ctx context.Context, w cdc.Work) (*copied, error) {
	plan, err := c.plan(ctx, w.Table)
	if err != nil {
		return nil, err
	}
	point, steps, err := c.snapshot(ctx, plan)
	if err != nil {
		return nil, err
	}
	mark, err := core.NewMark(point).Encode()
	if err != nil {
		return nil, err
	}
	changes, err := plan.changed(steps, c.where)
	if err != nil {
		return nil, err
	}
	got, err := c.scan(ctx, &copied{Work: w, plan: plan, data: c.spare.Take()}, changes)
	if err != nil {
		return nil, err
	}
	got.mark, got.room = mark, got.data
	now := &catalog.Table{Name: plan.captured.Name}
	session, err := c.sql.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := catalog.Describe(ctx, session, []*catalog.Table{now}); err != nil {
		return nil, err
	}
	if now.Signature() != plan.captured.Signature {
		return nil, columnsChanged(c.where, plan.captured)
	}
	return got, c.merge(ctx, got, changes)
}

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
	if err := c.follow(ctx); err != nil {
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
		if err := awaitVisible(ctx, session, &from); err != nil {
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

// awaitVisible waits until everything before a point of MySQL's log is visible.
func awaitVisible(ctx context.Context, s *server.Session, p *core.Point) error {
	if p.Family == position.MySQLBinlog {
		return s.AwaitCommits(ctx)
	}
	return s.AwaitExecuted(ctx, p.GTIDs)
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
		c.sql.close() // the statement cannot be ended otherwise
		return got, nil
	case err != nil:
		return nil, err
	}
	if got.step == halves.Fill {
		got.step = halves.Filled
	}
	return got, session.Exec(ctx, "COMMIT")
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
