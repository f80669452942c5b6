package cdcmysql

import (
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// connectorName is how reports call this source.
const connectorName = "mysql"

// progress is what a reader may be asked about from other goroutines. The reader touches it once per batch.
type progress struct {
	copies bool // the reader never has the log
	beats  halves.Beats[*core.Point]

	mu         sync.Mutex
	phase      report.Lifecycle
	splits     halves.Splits
	restored   position.Position
	consumed   position.Position
	lastChange time.Time
	lastEvent  int64 // microseconds since 1970; rows.NoTs before the first row
	rows       uint64
	tables     map[rows.TableID]uint64 // rows
	waiting    map[rows.TableID]string // why
	head       report.SourceHead
	at         position.BinlogPos // the end of the last transaction that was read, in the server's files
	retained   int64
	growth     halves.Growth
	keeps      *report.Retention // nil before the log that is kept was seen
}

func newProgress(copies bool) *progress {
	return &progress{copies: copies, phase: report.Snapshot, lastEvent: rows.NoTs, tables: make(map[rows.TableID]uint64), waiting: make(map[rows.TableID]string)}
}

func (p *progress) split(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.splits.Begin(id)
}

func (p *progress) lifecycle(l report.Lifecycle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = l
}

// read says that a split is.
func (p *progress) read(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.splits.End(id)
}

func (p *progress) start(from position.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.splits.Follow()
	p.restored, p.consumed = from, from
}

// waits says why a table is not read yet; an empty reason ends it.
func (p *progress) waits(table core.Name, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id := rows.TableID(table.String()); why != "" {
		p.waiting[id] = why
	} else {
		delete(p.waiting, id)
	}
}

func (p *progress) emitted(id rows.TableID, n int, ts int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tables[id] += uint64(n)
	p.rows += uint64(n)
	p.beats.Emit()
	if ts != rows.NoTs {
		p.lastEvent = ts
	}
}

// consume says that everything before at has been emitted; before is the last place between two transactions there.
func (p *progress) consume(at position.Position, before *core.Point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at.Equal(p.consumed) {
		return
	}
	p.consumed, p.lastChange = at, time.Now()
	p.beats.Pass(p.lastChange, before.Has)
}

// reach takes where in the server's files a transaction ends that was read.
func (p *progress) reach(at position.BinlogPos) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = at
}

// place is where in the server's files the reader is; zero before its first transaction.
func (p *progress) place() position.BinlogPos {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// keep takes how much log the server had behind the reader at a moment, and the age at which it removes it.
func (p *progress) keep(now time.Time, bytes int64, age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.growth.See(now, bytes)
	p.retained, p.keeps = bytes, &report.Retention{Age: age, Room: report.UnsupportedOf[int64](), Growth: p.growth.Rate()}
}

// observe takes where the server's log is, which was asked for at a moment, behind the barrier of an epoch.
func (p *progress) observe(asked time.Time, after uint64, head *core.Point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.head = report.SourceHead{Position: head.Public(), At: now.UTC(), Sequence: p.head.Sequence + 1, After: after}
	if !p.splits.Following() {
		return
	}
	p.beats.See(asked, head)
	p.beats.Pass(now, func(end *core.Point) bool { // it may have been reached before it was seen
		order, comparable := position.Compare(p.consumed, end.Public())
		return comparable && order >= 0
	})
}

func (p *progress) report() report.Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := report.Reader{Connector: connectorName, Lifecycle: p.phase, ActiveSplit: p.splits.Active(), Rows: report.ExactOf(p.rows)}
	for id, n := range p.tables {
		r.Tables = append(r.Tables, report.Table{Name: string(id), Lifecycle: p.phase, Rows: report.ExactOf(n), Note: p.waiting[id]})
	}
	for id, why := range p.waiting {
		if _, listed := p.tables[id]; !listed {
			r.Tables = append(r.Tables, report.Table{Name: string(id), Lifecycle: p.phase, Rows: report.ExactOf[uint64](0), Note: why})
		}
	}
	slices.SortFunc(r.Tables, func(a, b report.Table) int { return strings.Compare(a.Name, b.Name) })
	if p.copies {
		// Only the reader of the log knows where the source is, and nobody may wait for this one.
		r.Copies, r.Lifecycle = true, report.Unknown
		r.Head, r.Beat = report.UnsupportedOf[report.SourceHead](), report.UnsupportedOf[report.Beat]()
		if !p.splits.Idle() {
			r.Lifecycle = report.Snapshot
		}
	}
	if !p.splits.Following() {
		return r
	}
	r.Restored, r.Consumed = report.ExactOf(p.restored), report.ExactOf(p.consumed)
	if !p.lastChange.IsZero() {
		r.LastChange = report.ExactOf(p.lastChange)
	}
	if p.lastEvent != rows.NoTs {
		r.LastEvent = report.ExactOf(time.UnixMicro(p.lastEvent).UTC())
	}
	if p.head.Sequence > 0 {
		r.Head = report.BestEffortOf(p.head)
	}
	if p.keeps != nil {
		r.RetainedBytes, r.Retention = report.BestEffortOf(p.retained), p.keeps
	}
	p.beats.Report(&r)
	return r
}

// knows reports whether at was told before.
func (p *progress) knows(at position.Position) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return at.Equal(p.consumed)
}
