package cdcpostgres

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// connectorName is how reports call this source.
const connectorName = "postgres"

// progress is what a reader may be asked about from other goroutines. The reader touches it once per batch.
type progress struct {
	metrics *metrics
	copies  bool // the reader never has the log
	beats   halves.Beats[position.LSN]

	mu         sync.Mutex
	phase      report.Lifecycle
	splits     halves.Splits
	restored   core.Position
	consumed   core.Position
	lastChange time.Time
	lastEvent  int64 // microseconds since 1970; rows.NoTs before the first row
	rows       uint64
	tables     map[rows.TableID]uint64 // rows

	head     report.SourceHead
	headOK   bool
	retained int64
	slotOK   bool
	growth   halves.Growth
	keeps    report.Retention
}

func newProgress(m *metrics, copies bool) *progress {
	return &progress{metrics: m, copies: copies, phase: report.Snapshot, lastEvent: rows.NoTs, tables: make(map[rows.TableID]uint64)}
}

// split says what is being read.
func (p *progress) split(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.splits.Begin(id)
}

// lifecycle says where the reader of the log is.
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

func (p *progress) start(from core.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.splits.Follow()
	p.restored, p.consumed = from, from
}

func (p *progress) emitted(ctx context.Context, id rows.TableID, n int, ts int64) {
	p.metrics.emitted(ctx, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tables[id] += uint64(n)
	p.rows += uint64(n)
	p.beats.Emit()
	if ts != rows.NoTs {
		p.lastEvent = ts
	}
}

// count is how many rows were emitted.
func (p *progress) count() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows
}

// consume says that everything before at has been emitted.
func (p *progress) consume(at core.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at != p.consumed {
		p.consumed, p.lastChange = at, time.Now()
		p.reach()
	}
}

// reach tells the beats when their end is passed.
func (p *progress) reach() {
	p.beats.Pass(time.Now(), func(end position.LSN) bool { return p.consumed.End >= end })
}

// moved reports whether at is news.
func (p *progress) moved(at core.Position) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return at != p.consumed
}

// observe takes where the server's log was, which was asked for at a moment, behind the barrier of an epoch.
func (p *progress) observe(ctx context.Context, asked time.Time, after uint64, h pgrepl.Head) {
	if h.SlotOK {
		p.metrics.keeps(ctx, h.Slot.Retained)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.head = report.SourceHead{Position: core.Position{End: h.LSN}.Public(), At: h.At, Sequence: p.head.Sequence + 1, After: after}
	p.headOK = true
	p.retained, p.slotOK = h.Slot.Retained, h.SlotOK
	p.growth.See(h.At, h.Slot.Retained)
	p.keeps = report.Retention{Bytes: h.KeepLimit, Growth: p.growth.Rate()}
	if h.Room != nil && h.KeepLimit > 0 {
		p.keeps.Room = report.BestEffortOf(*h.Room)
	}
	if p.splits.Following() {
		p.beats.See(asked, h.Flushed)
		p.reach()
	}
}

func (p *progress) report() report.Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := report.Reader{Connector: connectorName, Lifecycle: p.phase, ActiveSplit: p.splits.Active(), Rows: report.ExactOf(p.rows)}
	for id, n := range p.tables {
		r.Tables = append(r.Tables, report.Table{Name: string(id), Lifecycle: p.phase, Rows: report.ExactOf(n)})
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
	r.Restored = report.ExactOf[position.Position](p.restored.Public())
	r.Consumed = report.ExactOf(p.consumed.Public())
	if !p.lastChange.IsZero() {
		r.LastChange = report.ExactOf(p.lastChange)
	}
	if p.lastEvent != rows.NoTs {
		r.LastEvent = report.ExactOf(time.UnixMicro(p.lastEvent).UTC())
	}
	if p.headOK {
		r.Head = report.BestEffortOf(p.head)
	}
	if p.slotOK {
		r.RetainedBytes = report.BestEffortOf(p.retained)
		keeps := p.keeps
		r.Retention = &keeps
	}
	p.beats.Report(&r)
	return r
}
