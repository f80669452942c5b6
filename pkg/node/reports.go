package node

import (
	"context"
	"encoding/json"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/telemetry"
)

// report publishes the reports when they are due.
func (n *node) report(ctx context.Context) {
	now := time.Now()
	due := now.Sub(n.moved) < busy || now.Sub(n.published) > calmReports-rereadEvery/2
	if due && !n.cfg.Silent {
		n.published = now
		n.publish(ctx)
	}
}

// Whoever waits for a job to catch up asks for an epoch, and then for what its readers see of their sources behind its barrier.
// answerEvery is how often that is looked for, answerWithin for how long; later it comes with the other reports.
const (
	answerEvery  = 50 * time.Millisecond
	answerWithin = 5 * time.Second
)

// owe notes that a head has answered somebody who asked for an epoch.
func (s *seat) owe(h *job.Head) {
	if h == nil || !s.asked.See(h) {
		return
	}
	s.askedAt = time.Now()
	if s.n.owed == nil {
		s.n.owed = time.After(answerEvery)
	}
}

// answer publishes once for all the jobs whose readers here have seen what somebody waits for.
func (n *node) answer(ctx context.Context) {
	n.owed = nil
	due, open := false, false
	for _, s := range n.jobs {
		if s.asked.Epoch == 0 {
			continue
		}
		readers, seen := s.looked(uint64(s.asked.Epoch))
		switch {
		case readers > 0 && seen == readers:
			due = true
		case readers > 0 && time.Since(s.askedAt) < answerWithin:
			open = true
			continue
		}
		s.asked.Epoch = 0
	}
	if due && !n.cfg.Silent {
		n.published = time.Now()
		n.publish(ctx)
	}
	if open {
		n.owed = time.After(answerEvery)
	}
}

// looked counts the readers here that see the head of their source, and those that have asked for it behind an epoch's barrier.
func (s *seat) looked(after uint64) (readers, seen int) {
	for _, t := range s.subtasks {
		r, ok := t.Report()
		if !ok || r.Reader == nil || r.Reader.Head.Accuracy() == report.Unsupported {
			continue
		}
		readers++
		if h, ok := r.Reader.Head.Get(); ok && h.After >= after {
			seen++
		}
	}
	return readers, seen
}

// publish samples the reports of all subtasks and stores them as one batch, beside the loop. Subtasks swap their reports
// atomically, so this never waits for a row or an epoch.
func (n *node) publish(ctx context.Context) {
	b := report.Batch{
		Version: report.BatchVersion, Node: n.me.Node, Incarnation: n.me.Incarnation, At: time.Now().UTC(),
		Reports: []report.Envelope{},
	}
	for _, s := range n.jobs {
		for _, t := range s.subtasks {
			if r, ok := t.Report(); ok {
				b.Reports = append(b.Reports, r)
			}
		}
	}
	n.work.Go(func() {
		body, err := json.Marshal(b)
		if err == nil {
			ctx, cancel := context.WithTimeout(ctx, rereadEvery)
			defer cancel()
			err = n.conn.PublishReport(ctx, n.me.Node, body)
		}
		if err != nil {
			n.log.DebugContext(ctx, "reports not published", telemetry.KeyError, err)
		}
	})
}
