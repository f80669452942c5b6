// Package view holds what the progress service shows at the moment.
//
// Role: the watcher shows a new [View] after each look; requests, listeners and metrics read the newest one.
//
// Invariants: a view is never changed once it is shown; a reader never waits for the watcher.
//
// Failure: a view that is too old is not shown any more, see [Board.Check].
//
// Source: docs/progress.md.
package view

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/progress"
)

// View is one look at all jobs.
type View struct {
	At time.Time
	// Jobs are in the order of their names.
	Jobs []Job
	// Refused counts the reports that this look refused, by verdict.
	Refused map[progress.Verdict]uint64
}

// Job is one job of a view.
type Job struct {
	progress.Detail

	Epochs progress.EpochList
	// Plan is that of the attempt; nil before it is placed.
	Plan *plan.Deployment
}

// Job finds a job by name.
func (v *View) Job(name string) (Job, bool) {
	i := slices.IndexFunc(v.Jobs, func(j Job) bool { return j.Job == name })
	if i < 0 {
		return Job{}, false
	}
	return v.Jobs[i], true
}

// keptNotices bounds the notices that are kept for a listener who is slow.
const keptNotices = 256

// Board is where views are shown. It is safe for concurrent use.
type Board struct {
	fresh time.Duration

	mu      sync.Mutex
	view    View
	notices []job.Notice
	told    uint64        // notices ever
	changed chan struct{} // closed when there is something new
}

// NewBoard makes a board whose view is too old after fresh.
func NewBoard(fresh time.Duration) *Board { return &Board{fresh: fresh, changed: make(chan struct{})} }

// Show replaces the view.
func (b *Board) Show(v View) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view = v
	b.wake()
}

// Tell hands a notice to those who listen.
func (b *Board) Tell(n job.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notices, b.told = append(b.notices, n), b.told+1
	b.notices = b.notices[max(0, len(b.notices)-keptNotices):]
	b.wake()
}

func (b *Board) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Now returns the view and a channel that is closed when there is something newer. An error says that the view is too old.
func (b *Board) Now() (View, <-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view, b.changed, b.check()
}

// Notices returns what was told behind mark, and the mark behind that. The first mark is that of [Board.Mark].
func (b *Board) Notices(mark uint64) ([]job.Notice, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(b.told-mark, uint64(len(b.notices)))
	return slices.Clone(b.notices[uint64(len(b.notices))-n:]), b.told
}

// Mark is where the notices stand.
func (b *Board) Mark() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told
}

// Epochs are those of a job as shown last.
func (b *Board) Epochs(name string) progress.EpochList {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j, ok := b.view.Job(name); ok {
		return j.Epochs
	}
	return progress.EpochList{Job: name, Epochs: []progress.EpochLine{}}
}

// Check reports whether the view is young enough to be shown.
func (b *Board) Check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.check()
}

func (b *Board) check() error {
	switch age := time.Since(b.view.At); {
	case b.view.At.IsZero():
		return fmt.Errorf("no job was looked at yet")
	case age > b.fresh:
		return fmt.Errorf("jobs were looked at %s ago", age.Round(time.Second))
	}
	return nil
}
