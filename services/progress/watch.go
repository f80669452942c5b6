package progress

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/progress/gather"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/progress/internal/store"
	"weir.dev/weir/services/progress/internal/view"
)

// fillSpan is the time over which new dead letters are counted.
const fillSpan = time.Minute

// watcher looks at all jobs again and again. It is one goroutine.
type watcher struct {
	log      *slog.Logger
	board    *view.Board
	read     *gather.Reader
	records  *store.Records
	interval time.Duration
	tracker  progress.Tracker
	filling  map[filled]*fill
}

// filled is a sink whose dead letters are counted.
type filled struct{ job, sink string }

// fill is how many there were when.
type fill struct {
	last uint64
	came []arrival
}

type arrival struct {
	at time.Time
	n  uint64
}

func (w *watcher) run(ctx context.Context, ready func()) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for told := false; ; {
		err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !told:
			w.log.WarnContext(ctx, "jobs cannot be looked at", telemetry.Err(err))
			told = true
		case err == nil:
			told = false
			if ready != nil {
				ready()
				ready = nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// look reads everything once and shows it.
func (w *watcher) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(5*w.interval, 5*time.Second))
	defer cancel()
	heads, err := w.read.Heads(ctx)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(heads))
	for _, h := range heads {
		there[h.Job] = true
		w.tracker.Open(h)
	}
	for _, name := range w.tracker.Jobs() {
		if !there[name] {
			w.tracker.Close(name)
		}
	}
	nodes, err := w.read.Nodes(ctx)
	if err != nil {
		return err
	}
	refused, err := w.take(ctx)
	if err != nil {
		return err
	}
	w.read.Forget(func(name string) bool { return !there[name] })
	maps.DeleteFunc(w.filling, func(k filled, _ *fill) bool { return !there[k.job] })
	shown := view.View{At: time.Now(), Refused: refused}
	for _, h := range heads {
		o, err := w.read.Observe(ctx, h, w.tracker.Of(h.Job, time.Now()), nodes)
		if err != nil {
			return err
		}
		o.Filling = w.fills(h.Job, sinksOf(o.Spec), o.Letters, o.At)
		epochs, err := w.read.Epochs(ctx, h, progress.MaxEpochs)
		if err != nil {
			// A chain that is read while it is collected: the list of before is as true as it was.
			epochs = w.board.Epochs(h.Job)
		}
		shown.Jobs = append(shown.Jobs, view.Job{Detail: progress.DetailOf(o), Epochs: epochs, Plan: o.Plan})
	}
	w.board.Show(shown)
	return w.records.Keep(ctx, shown.Jobs, w.tracker.Of)
}

// take takes the newest reports in, and counts those that it refuses, by verdict.
func (w *watcher) take(ctx context.Context) (map[progress.Verdict]uint64, error) {
	batches, bad, err := w.read.Reports(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	refused := map[progress.Verdict]uint64{progress.Invalid: uint64(bad)}
	for _, b := range batches {
		for _, e := range b.Reports {
			if v := w.tracker.Take(b.Node, e, now); v.Refused() {
				refused[v]++
			}
		}
	}
	return refused, nil
}

func sinksOf(j *spec.Job) (names []string) {
	for _, k := range j.Sinks {
		names = append(names, k.Name)
	}
	return names
}

// fills counts the dead letters that came to a job's sinks within the last minute. A sink without any is not in letters, and
// is counted from none, so that its first ones came too.
func (w *watcher) fills(name string, sinks []string, letters map[string]uint64, at time.Time) map[string]uint64 {
	out := make(map[string]uint64)
	for _, sink := range sinks {
		k, n := filled{name, sink}, letters[sink]
		f := w.filling[k]
		if f == nil {
			// What was there before the first look did not come now.
			w.filling[k] = &fill{last: n}
			continue
		}
		if n > f.last {
			f.came = append(f.came, arrival{at, n - f.last})
		}
		f.last = n
		f.came = slices.DeleteFunc(f.came, func(a arrival) bool { return at.Sub(a.at) > fillSpan })
		for _, a := range f.came {
			out[sink] += a.n
		}
	}
	return out
}

// follow hands what the leader tells on to those who listen.
func follow(ctx context.Context, conn *bus.Conn, board *view.Board) error {
	w := conn.WatchEvents(ctx, "*", time.Now())
	defer w.Close()
	var revision uint64
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case u, ok := <-w.Updates():
			if !ok {
				return context.Cause(ctx)
			}
			if u.Kind != bus.Put || u.Entry.Revision <= revision {
				continue // after a lost connection they come again
			}
			revision = u.Entry.Revision
			var n job.Notice
			if json.Unmarshal(u.Entry.Value, &n) == nil {
				board.Tell(n)
			}
		}
	}
}
