package meshtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/verdict"
)

// Target is a database in memory with what a transactional sink needs: a ledger row per (job, sink), a log of commits,
// and steps that are visible as a whole or not at all. It has the ways to misbehave that a real one has. It is safe for
// concurrent use; the zero value is an empty database.
type Target struct {
	mu      sync.Mutex
	ledgers map[verdict.LedgerID]job.LedgerRow
	log     []verdict.Applied
	changes []verdict.Change
	faults  targetFaults
	refused uint64
}

type targetFaults struct {
	down       bool
	slow       time.Duration
	lostReply  int
	constraint string
	frozen     chan struct{}
	reached    chan struct{}
	watch      func(CommitStep)
}

// CommitStep is a place in a commit at which a test can act.
type CommitStep uint8

// The steps: the committer is about to begin its transaction, and the target has committed it but not said so.
const (
	BeforeCommit CommitStep = iota + 1
	AfterCommit
)

// WatchCommits calls f at the steps of every commit, in the committer's goroutine; nil ends it.
func (t *Target) WatchCommits(f func(CommitStep)) { t.set(func(tf *targetFaults) { tf.watch = f }) }

// SetDown makes every claim and commit fail as if the server could not be reached.
func (t *Target) SetDown(down bool) { t.set(func(f *targetFaults) { f.down = down }) }

// SetSlow makes every commit take this long before it does anything.
func (t *Target) SetSlow(d time.Duration) { t.set(func(f *targetFaults) { f.slow = d }) }

// LoseReplies lets the next n commits succeed and tells the committer that their result is unknown.
func (t *Target) LoseReplies(n int) { t.set(func(f *targetFaults) { f.lostReply = n }) }

// Refuse makes commits with rows of a table fail for good, as a violated constraint does; "" ends it.
func (t *Target) Refuse(table string) { t.set(func(f *targetFaults) { f.constraint = table }) }

// Freeze stops the next commit before it touches anything, like a process that was stopped there: it does not notice
// that its attempt ends. reached is closed when a commit stands there; thaw lets it go on.
func (t *Target) Freeze() (reached <-chan struct{}, thaw func()) {
	f, r := make(chan struct{}), make(chan struct{})
	t.set(func(tf *targetFaults) { tf.frozen, tf.reached = f, r })
	return r, sync.OnceFunc(func() { close(f) })
}

func (t *Target) set(f func(*targetFaults)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.faults)
}

// Changes is everything that is visible, in the order in which it became so.
func (t *Target) Changes() []verdict.Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.changes)
}

// Log is the ledger log of all sinks.
func (t *Target) Log() []verdict.Applied {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.log)
}

// Ledger is the current row of a job's sink; ok is false when there is none.
func (t *Target) Ledger(jobName, sink string) (row job.LedgerRow, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row, ok = t.ledgers[verdict.LedgerID{Job: jobName, Sink: sink}]
	return row, ok
}

// Refused counts commits of older fences that the ledger turned away.
func (t *Target) Refused() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused
}

// Rows is the table state that an upsert of all changes gives: key to row, by table.
func (t *Target) Rows() map[string]map[string]string { return verdict.Replay(t.Changes()) }

// Restore puts the target back to what it was after its first n commits: somebody restored an old copy.
func (t *Target) Restore(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = t.log[:n:n]
	kept := make(map[epoch.ID]bool)
	last := make(map[verdict.LedgerID]epoch.Ref)
	for _, a := range t.log {
		kept[a.Ref.Epoch] = true
		last[a.LedgerID] = a.Ref
	}
	var changes []verdict.Change
	for _, c := range t.changes {
		if kept[c.Epoch] {
			changes = append(changes, c)
		}
	}
	t.changes = changes
	for k, row := range t.ledgers {
		row.Ref = last[k]
		t.ledgers[k] = row
	}
}

var errDown = fault.New(fault.SinkUnreachable, "target", "the test has taken it down")

// claim takes the ledger of (job, sink) for a fence.
func (t *Target) claim(jobName, sink, life string, own fence.Token) (job.LedgerRow, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.faults.down {
		return job.LedgerRow{}, errDown
	}
	k := verdict.LedgerID{Job: jobName, Sink: sink}
	row, ok := t.ledgers[k]
	switch {
	case !ok:
		row = job.LedgerRow{Life: life}
	case row.Life != life:
		return row, fault.New(fault.JobLedgerForeign, "sinks."+sink, fmt.Sprintf("the ledger's life is %s, the job's %s", row.Life, life))
	case row.Fence > own:
		t.refused++
		return row, fault.New(fault.SinkFenced, "sinks."+sink, fmt.Sprintf("claimed by fence %s", row.Fence))
	}
	row.Fence = own
	if t.ledgers == nil {
		t.ledgers = make(map[verdict.LedgerID]job.LedgerRow)
	}
	t.ledgers[k] = row
	return row, nil
}

// step is one commit: rows and ledger in one go.
type step struct {
	verdict.LedgerID
	life      string
	fence     fence.Token
	ref, prev epoch.Ref
	changes   []verdict.Change
}

// apply does a step. applied is false when the ledger already held it.
func (t *Target) apply(ctx context.Context, s step) (applied bool, err error) {
	t.mu.Lock()
	slow, frozen, reached, watch := t.faults.slow, t.faults.frozen, t.faults.reached, t.faults.watch
	t.faults.frozen, t.faults.reached = nil, nil
	t.mu.Unlock()
	if watch != nil {
		watch(BeforeCommit)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		defer func() {
			if applied {
				watch(AfterCommit)
			}
		}()
	}
	if frozen != nil {
		close(reached)
		<-frozen
	}
	if slow > 0 {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.faults.down {
		return false, errDown
	}
	k := s.LedgerID
	row, ok := t.ledgers[k]
	switch {
	case !ok || row.Life != s.life:
		return false, fault.New(fault.JobLedgerForeign, "sinks."+s.Sink, "the ledger row is not this job's")
	case row.Fence != s.fence:
		t.refused++
		return false, fault.New(fault.SinkFenced, "sinks."+s.Sink, fmt.Sprintf("claimed by fence %s", row.Fence))
	case row.Ref == s.ref:
		return false, nil
	case row.Ref != s.prev:
		return false, fault.New(fault.JobLedgerDiverged, "sinks."+s.Sink, fmt.Sprintf(
			"the ledger holds epoch %s, wanted %s or %s", row.Ref.Epoch, s.prev.Epoch, s.ref.Epoch))
	}
	for _, c := range s.changes {
		if t.faults.constraint != "" && c.Table == t.faults.constraint {
			return false, fault.New(fault.SinkConstraint, "sinks."+s.Sink, "the test refuses rows of "+c.Table)
		}
	}
	row.Ref = s.ref
	t.ledgers[k] = row
	t.changes = append(t.changes, s.changes...)
	t.log = append(t.log, verdict.Applied{
		LedgerID: s.LedgerID, Ref: s.ref, Prev: s.prev, Fence: s.fence, Rows: uint64(len(s.changes)), At: time.Now(),
	})
	if t.faults.lostReply > 0 {
		t.faults.lostReply--
		return false, fault.New(fault.SinkAmbiguous, "sinks."+s.Sink, "the test has lost the reply")
	}
	return true, nil
}

// changeOf reads row i of a batch.
func changeOf(b *rows.Batch, i int) verdict.Change {
	row := b.AppendColumnsJSON(nil, i)
	c := verdict.Change{
		Table: string(b.Schema().Table()), Op: b.Op(i), Txn: b.Txn(i), Ord: b.Ord(i), Row: string(row),
	}
	var key []any
	var all map[string]json.RawMessage
	if err := json.Unmarshal(row, &all); err == nil {
		for _, k := range b.Schema().Key() {
			key = append(key, all[b.Schema().Column(k).Name])
		}
	}
	text, err := json.Marshal(key)
	if err != nil {
		text = row
	}
	c.Key = string(text)
	return c
}
