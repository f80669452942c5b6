package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/telemetry"
)

// streamWatch is what was last seen of an attempt's data stream: it may only grow, and never be another one.
type streamWatch struct {
	fence   fence.Token
	seen    bool
	created time.Time
	lastSeq uint64
	// looked is when the last look was asked for, calm how many looks in a row have found nothing new.
	looked time.Time
	calm   int
}

// mostCalm bounds how much rarer the stream of a job is looked at that has nothing to do: 32 times.
const mostCalm = 5

// due reports whether it is time for another look. A stream that moves is looked at each time. One that rests is looked at
// ever less: until rows come again its loss costs nothing, and then their writer meets it at once.
func (w *streamWatch) due(now time.Time, every time.Duration) bool {
	// Half of the pause is forgiven to a ticker that is early.
	return now.Sub(w.looked) >= every<<min(w.calm, mostCalm)-every/2
}

// judge compares a look at the stream with the last one; why is empty when nothing is lost.
func (w *streamWatch) judge(s bus.DataState) (why string) {
	switch {
	case !w.seen:
	case !s.Created.Equal(w.created):
		return fmt.Sprintf("the data stream was made at %s, the attempt's at %s", s.Created, w.created)
	case s.LastSeq < w.lastSeq:
		return fmt.Sprintf("the data stream ends at %d, it was at %d", s.LastSeq, w.lastSeq)
	}
	w.calm++
	if !w.seen || s.LastSeq != w.lastSeq {
		w.calm = 0
	}
	w.seen, w.created, w.lastSeq = true, s.Created, s.LastSeq
	return ""
}

// probeStreams looks at the data streams of running attempts. A memory stream vanishes with its server, and may come
// back empty.
func (l *leader) probeStreams(ctx context.Context) {
	t := time.NewTicker(l.cfg.Probe.Std())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			l.post(ctx, func(ctx context.Context) { l.lookAtStreams(ctx, false) })
		}
	}
}

// lookAtStreams starts one look at each stream that must be there and is due, or at all of them.
func (l *leader) lookAtStreams(ctx context.Context, all bool) {
	now := time.Now()
	for name, s := range l.jobs {
		h, a := s.state.Head, s.state.Attempt
		if h == nil || h.Phase.AtRest() || !a.Streams && h.Plan == nil {
			continue
		}
		f := h.Fence
		if s.stream.fence != f {
			s.stream = streamWatch{fence: f}
		}
		if !all && !s.stream.due(now, l.cfg.Probe.Std()) {
			continue
		}
		s.stream.looked = now
		l.work.Go(func() {
			seen, err := l.conn.DataState(ctx, name, f)
			l.post(ctx, func(ctx context.Context) { l.looked(ctx, name, f, seen, err) })
		})
	}
}

// looked takes a look in. Only a stream that is not there, or is another one, is loss; an unanswered question is not.
func (l *leader) looked(ctx context.Context, name string, f fence.Token, seen bus.DataState, err error) {
	s := l.seat(ctx, name)
	if s.state.Head == nil || s.state.Head.Fence != f || s.stream.fence != f {
		return
	}
	why := ""
	switch {
	case errors.Is(err, bus.ErrStreamGone) && !errors.Is(err, bus.ErrNoResponders):
		why = "the data stream is gone"
	case err != nil:
		l.log.DebugContext(ctx, "data stream not looked at", telemetry.KeyJob, name, telemetry.KeyError, telemetry.ErrorValue(err))
	default:
		why = s.stream.judge(seen)
	}
	if why != "" {
		l.step(ctx, name, func(m job.Moment) job.Event { return job.StreamLost{Moment: m, Fence: f, Why: why} })
	}
}
