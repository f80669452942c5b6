package cdcmysql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

const (
	// copyTries bounds how often a chunk is read again when a connection breaks, of which nothing has been emitted, and copyPatience
	// for how long: whoever looks at the job has to see why it stands still.
	copyTries    = 5
	copyPause    = 200 * time.Millisecond
	copyPatience = 3 * time.Second
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
//
// The chunks that follow are read in the same snapshot and have the same mark, until it is a second old or the copier would have to
// wait with it: to open one costs as much as to read a small chunk.
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
	view     *view // the snapshot that is open in the session
	facts    *server.Facts
	follower *follower
	lives    int             // followers so far
	followed *server.Session // of the follower's server
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
		if len(c.work) == 0 {
			c.leave(ctx)
		}
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
	default:
		c.leave(ctx)
	}
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
	c.view = nil
	c.sql.close()
	c.follower.close()
	c.follower = nil
}

// patiently reads a chunk, over new connections when the old ones break.
func (c *copier) patiently(ctx context.Context, w cdc.Work, read func(context.Context, cdc.Work) (*copied, error)) *copied {
	pause := copyPause
	var failed time.Time // the first time
	for try := 1; ; try++ {
		got, err := read(ctx, w)
		if err == nil {
			return got
		}
		if failed.IsZero() {
			failed = time.Now()
		}
		if t := c.tables[w.Table]; t != nil && fault.CodeOf(err) == fault.MYSchemaChanged {
			c.leave(ctx) // it might see the catalog of its beginning
			err = c.misfit(ctx, &c.sql, t, err)
		}
		c.drop()
		over := try == copyTries || time.Since(failed) >= copyPatience || fault.CodeOf(err) == fault.MYSilent // which was waited for long
		if over || ctx.Err() != nil || fault.ClassOf(err) != fault.Transient || fault.CodeOf(err) == fault.MYCopyAltered {
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
	c.leave(ctx) // it might see the catalog of its beginning
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

// follow starts the copier's own log where there is none of the session's server: places in a log, and what is visible, are compared of
// one server only. After a failover the old one's log may still be read.
func (c *copier) follow(ctx context.Context, session *server.Session) (err error) {
	if c.follower != nil && c.followed == session {
		return nil
	}
	if c.facts, err = session.Facts(ctx); err != nil {
		return err
	}
	if c.follower != nil && c.follower.uuid == c.facts.UUID {
		c.followed = session
		return nil
	}
	c.follower.close()
	c.follower = nil
	from := core.Point{Family: c.source.Start.Family}
	if from.Family == position.MySQLGTID {
		if from.GTIDs, err = session.Executed(ctx); err != nil {
			return err
		}
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
	if c.follower.uuid != c.facts.UUID {
		return fault.New(fault.MYNotOneServer, c.where, fmt.Sprintf("a connection is to server %s, the next is to %s", c.facts.UUID, c.follower.uuid), "where", c.where)
	}
	c.followed = session
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
	v, err := c.look(ctx, plan)
	if err != nil {
		return nil, err
	}
	got, err := c.scan(ctx, &copied{Work: w, plan: plan, data: c.spare.Take()}, v.changes)
	if err != nil {
		return nil, err
	}
	got.mark, got.room = v.mark, got.data
	if err := c.unchanged(ctx, v); err != nil {
		return nil, err
	}
	return got, c.merge(ctx, got, v.changes)
}
