package task

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Facts takes what subtasks tell the coordinator; the last one of a subject counts. *bus.Conn is one.
type Facts interface {
	PutFact(ctx context.Context, subject string, h bus.Header, data []byte) error
}

// repeatEvery is how often an open fact is told again. A lost message costs this much latency, nothing else.
const repeatEvery = time.Second

// Board holds the open facts of one subtask, at most one of each kind, and tells them until they are closed: at once
// when they change, then every second. It outlives the subtask's loop, because a failure is a fact too.
type Board struct {
	facts   Facts
	job     string
	fence   fence.Token
	subtask plan.SubtaskID
	log     *slog.Logger
	kick    chan struct{}

	mu   sync.Mutex
	open map[envelope.Kind]*openFact
}

type openFact struct {
	header bus.Header
	body   []byte
	told   bool
}

// NewBoard makes the board of a subtask.
func NewBoard(facts Facts, job string, f fence.Token, s plan.SubtaskID, log *slog.Logger) *Board {
	return &Board{
		facts: facts, job: job, fence: f, subtask: s, log: log,
		kick: make(chan struct{}, 1), open: make(map[envelope.Kind]*openFact),
	}
}

// Open tells a fact from now on; it replaces an open one of its kind. e is the epoch it is about, or zero.
func (b *Board) Open(kind envelope.Kind, e epoch.ID, fact any) {
	body, err := json.Marshal(fact)
	if err != nil {
		// Facts are plain structs of this repository.
		panic(fmt.Sprintf("task: marshal %s fact: %v", kind, err))
	}
	env := envelope.Envelope{Kind: kind, Fence: b.fence, Epoch: e}
	b.mu.Lock()
	b.open[kind] = &openFact{header: env.Header(), body: body}
	b.mu.Unlock()
	b.signal()
}

// Close stops telling a fact.
func (b *Board) Close(kind envelope.Kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, kind)
}

// Repeat tells all open facts again at once: the bus may have forgotten them.
func (b *Board) Repeat() {
	b.mu.Lock()
	for _, f := range b.open {
		f.told = false
	}
	b.mu.Unlock()
	b.signal()
}

func (b *Board) signal() {
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// Run tells facts until ctx ends.
func (b *Board) Run(ctx context.Context) {
	// The clock stands while nothing is open: most of the time of most subtasks.
	again := time.NewTimer(repeatEvery)
	defer again.Stop()
	running := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.kick:
			b.tell(ctx, false)
			if !running {
				again.Reset(repeatEvery)
				running = true
			}
		case <-again.C:
			b.tell(ctx, true)
			if running = b.anything(); running {
				again.Reset(repeatEvery)
			}
		}
	}
}

// anything reports whether a fact is open.
func (b *Board) anything() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open) > 0
}

// tell publishes what has not been told, or everything.
func (b *Board) tell(ctx context.Context, all bool) {
	b.mu.Lock()
	due := make(map[envelope.Kind]*openFact, len(b.open))
	for k, f := range b.open {
		if all || !f.told {
			due[k] = f
		}
	}
	b.mu.Unlock()
	for k, f := range due {
		tctx, cancel := context.WithTimeout(ctx, repeatEvery)
		err := b.facts.PutFact(tctx, bus.AckSubject(b.job, b.fence, string(k), b.subtask), f.header, f.body)
		cancel()
		if err != nil {
			b.log.DebugContext(ctx, "fact not told, it will be repeated", "kind", string(k), "error", err)
			continue
		}
		b.mu.Lock()
		f.told = true
		b.mu.Unlock()
	}
}
