package cdcpostgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
	"weir.dev/weir/services/cdc-postgres/internal/scan"
)

const (
	// firstVersion is the schema version of the rows of a table's first copy.
	firstVersion = 1
	// copyTries bounds how often a chunk is read again when the connection breaks; nothing of it has been emitted.
	copyTries = 5
	copyPause = 200 * time.Millisecond
)

// copier reads chunks, one after the other, for a reader that emits them. It runs SQL, so the reader's loop does not.
type copier struct {
	target  *pgrepl.Target
	log     *slog.Logger
	tables  map[cdc.TableID]*capturedTable
	store   source.Store
	segment int // bytes of a table without a key that are held
	work    chan cdc.Work
	tell    chan cdc.TableID // how the table is read, without reading it
	done    chan *copied
	spare   halves.Memory // memory of chunks that were emitted, for the next ones
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	sql   session
	plans map[cdc.TableID]*copyPlan
}

// copyPlan is a table bound for reading. The reader that emits uses the table; the copier only its plan's statement.
type copyPlan struct {
	*table
	scan   *scan.Plan
	keyAt  []int                      // where the columns of the key are among those that are read
	covers []func(cell []byte) []byte // by column, nil where nothing is masked; the copier's
	cells  [][]byte                   // of the tuple being masked
}

// keep appends a tuple to what is kept of a chunk. Cells are masked before: segments lie on the bus.
func (p *copyPlan) keep(dst, tuple []byte) ([]byte, error) {
	if p.covers == nil {
		return append(dst, tuple...), nil
	}
	var err error
	if p.cells, err = scan.Cells(p.cells[:0], tuple); err != nil {
		return dst, err
	}
	for i, cover := range p.covers {
		if cover != nil && p.cells[i] != nil {
			p.cells[i] = cover(p.cells[i])
		}
	}
	return scan.AppendTuple(dst, p.cells), nil
}

// copied is a chunk in memory, with its mark.
type copied struct {
	cdc.Work
	plan *copyPlan
	data []byte // tuples, one behind the other, see [scan]
	room []byte // where data begins; the copier's memory
	rows uint64
	mark *core.Mark
	bare bool    // nothing was to be read
	cut  cdc.Key // where the reader has to stop short of the chunk's end; nil when it was read whole
	err  error

	step  halves.Step
	part  int           // of a spool being filled
	first uint64        // rows of a spool before those of this segment
	spool *halves.Spool // of a segment that was fetched; the reader's
}

func startCopier(o *opened, tables []capturedTable) *copier {
	ctx, cancel := context.WithCancel(context.Background())
	c := &copier{
		target: o.target, log: o.cfg.Logger, tables: byID(tables), cancel: cancel, sql: session{target: o.target},
		store: o.cfg.Store, segment: int(o.cfg.Segment),
		work: make(chan cdc.Work, 1), tell: make(chan cdc.TableID, 1), done: make(chan *copied, 1), spare: halves.NewMemory(),
		plans: make(map[cdc.TableID]*copyPlan),
	}
	c.ended.Go(func() { c.run(ctx) })
	return c
}

func (c *copier) close() {
	c.cancel()
	c.ended.Wait()
}

func (c *copier) run(ctx context.Context) {
	defer c.sql.close(ctx)
	for {
		var got *copied
		select {
		case <-ctx.Done():
			return
		case w := <-c.work:
			got = c.take(ctx, w)
		case id := <-c.tell:
			got = c.patiently(ctx, cdc.Work{Chunk: cdc.Chunk{ChunkID: cdc.ChunkID{Table: id}}}, c.describe)
		case <-c.sql.unused():
			c.sql.close(ctx)
			c.spare.Forget()
			continue
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

// patiently reads a chunk, over a new connection when the old one breaks.
func (c *copier) patiently(ctx context.Context, w cdc.Work, read func(context.Context, cdc.Work) (*copied, error)) *copied {
	pause := copyPause
	for try := 1; ; try++ {
		got, err := read(ctx, w)
		if err == nil {
			return got
		}
		err = c.target.Fault(err)
		c.sql.close(ctx)
		if try == copyTries || ctx.Err() != nil || fault.ClassOf(err) != fault.Transient || fault.CodeOf(err) == fault.PGCopyAltered {
			return &copied{Work: w, err: fmt.Errorf("copy chunk %s: %w", w.ChunkID, err)}
		}
		c.log.WarnContext(ctx, "chunk is read again", slog.String("chunk", w.String()), telemetry.Err(err))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause *= 2
		}
	}
}

// describe finds out how the table of a chunk is read.
func (c *copier) describe(ctx context.Context, w cdc.Work) (*copied, error) {
	_, plan, err := c.plan(ctx, w.Table)
	return &copied{Work: w, plan: plan, bare: true}, err
}

// errFull ends a statement whose rows have become too many bytes.
var errFull = errors.New("chunk is full")

// read reads a chunk and its mark: the lock first, so that no change of the table falls between the snapshot and the rows;
// then the snapshot, the rows in it, and an end of the log behind them.
func (c *copier) read(ctx context.Context, w cdc.Work) (*copied, error) {
	t, plan, err := c.plan(ctx, w.Table)
	if err != nil {
		return nil, err
	}
	conn, err := c.sql.open(ctx)
	if err != nil {
		return nil, err
	}
	begun, err := conn.PgConn().Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE "+t.from()+
		" IN ACCESS SHARE MODE; SELECT pg_current_snapshot()::text, "+fmt.Sprintf(columnsOf, fmt.Sprint(t.OID))).ReadAll()
	if err != nil {
		return nil, err
	}
	seen := begun[len(begun)-1].Rows[0]
	if string(seen[1]) != t.Columns {
		return nil, copyAltered(c.target.Where(), t)
	}
	got := &copied{Work: w, plan: plan, data: c.spare.Take()}
	sql, err := statement(t, plan.scan, w.Chunk)
	if err != nil {
		return nil, err
	}
	limit, stop := cdc.DefaultChunkBytes, [][]byte(nil)
	if len(t.Key) == 0 {
		limit = c.segment
	}
	calm := pgrepl.Bulk(conn)
	_, err = scan.Copy(ctx, conn.PgConn(), sql, func(tuple []byte) (err error) {
		switch full := len(got.data) >= limit && got.rows > 0; {
		case full && len(t.Key) == 0:
			if got, err = c.pass(ctx, got); err != nil {
				return err
			}
		case full:
			if stop, err = plan.keyCells(tuple); err != nil {
				return err
			}
			return errFull
		}
		got.rows++
		if len(tuple) > rowLimit {
			return c.tooBig(t, len(tuple))
		}
		got.data, err = plan.keep(got.data, tuple)
		return err
	})
	calm()
	switch {
	case errors.Is(err, errFull):
		c.sql.close(ctx) // the statement cannot be ended otherwise
		if conn, err = c.sql.open(ctx); err != nil {
			return nil, err
		}
		if got.cut, err = plan.keyOf(ctx, conn, t, stop); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, c.beyondServer(err, t)
	default:
		if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
			return nil, err
		}
	}
	var end string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&end); err != nil {
		return nil, err
	}
	lsn, err := position.ParseLSN(end)
	if err != nil {
		return nil, err
	}
	if got.step == halves.Fill {
		got.step = halves.Filled
	}
	got.room = got.data
	got.mark, err = core.NewMark(string(seen[0]), lsn)
	return got, err
}

// pass hands over a segment of a table without a key, and begins the next one.
func (c *copier) pass(ctx context.Context, got *copied) (next *copied, err error) {
	if got.part+1 == halves.SpoolSegments {
		t := c.tables[got.Table]
		return nil, fault.New(fault.PGKeylessTooBig, c.target.Where(), fmt.Sprintf(
			"table %s has more than %d MiB and no key to read it by in parts", t, int64(c.segment)*halves.SpoolSegments>>20), "table", t.Sanitize(), "where", c.target.Where())
	}
	got.step, got.room = halves.Fill, got.data
	if !c.send(ctx, got) {
		return nil, ctx.Err()
	}
	return &copied{Work: got.Work, plan: got.plan, step: halves.Fill, part: got.part + 1, data: c.spare.Take()}, nil
}

// plan finds how a table is read; it is bound for reading once.
func (c *copier) plan(ctx context.Context, id cdc.TableID) (*capturedTable, *copyPlan, error) {
	t := c.tables[id]
	if t == nil {
		return nil, nil, fmt.Errorf("table %d is not captured: %w", id, fault.Bug)
	}
	if p := c.plans[id]; p != nil {
		return t, p, nil
	}
	conn, err := c.sql.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := c.bind(ctx, conn, t)
	if err != nil {
		return nil, nil, err
	}
	c.plans[id] = p
	return t, p, nil
}

// bind describes a table as it is today, which has to be as it was captured.
func (c *copier) bind(ctx context.Context, conn *pgx.Conn, t *capturedTable) (*copyPlan, error) {
	now, err := catalog.ByOID(ctx, conn, t.OID)
	if err != nil {
		return nil, err
	}
	if now == nil || now.Name != t.TableName {
		return nil, columnsChanged(c.target.Where(), t)
	}
	types, err := typesOf(ctx, conn, []*catalog.Table{now})
	if err != nil {
		return nil, err
	}
	d := t.veil.describe(relationOf(now), now, types, c.target.Where())
	if d.err != nil {
		return nil, d.err
	}
	if !adopt(d, t.Version) {
		return nil, misfit(ctx, conn, c.target.Where(), t)
	}
	bound, err := bind(d, t.Number, c.target.Where())
	if err != nil {
		return nil, err
	}
	if bound.builder.Schema().Fingerprint().String() != t.Fingerprint {
		return nil, misfit(ctx, conn, c.target.Where(), t)
	}
	p := &copyPlan{table: bound}
	if p.scan, err = scan.Bind(bound.builder.Builder, d.codecs); err != nil {
		return nil, fault.Wrap(err, fault.PGTypeUndecodable, c.target.Where(), err.Error())
	}
	if p.keyAt, err = keyColumnsOf(t, d.columns); err != nil {
		return nil, err
	}
	if len(d.masks) > 0 {
		p.covers = make([]func([]byte) []byte, len(d.columns))
	}
	for _, m := range d.masks {
		p.covers[m.column] = m.cover()
	}
	return p, nil
}
