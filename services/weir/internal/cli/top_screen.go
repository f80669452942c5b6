package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/weir/internal/control"
)

// topScreen is what weir top shows: a value that draws itself.
type topScreen struct {
	plain         bool // no colours
	width, height int
	chosen        string
	now           looked
	rates         map[string]float64 // rows per second, by job/source
	before        map[string]mark
}

// mark is how many rows a source had emitted when.
type mark struct {
	fence, rows uint64
	at          time.Time
}

// take takes a look in. One that failed leaves what was seen and says why.
func (t *topScreen) take(l looked) {
	if l.err != nil {
		t.now.err = l.err
		return
	}
	t.now = l
	if t.index() < 0 && len(l.jobs) > 0 {
		t.chosen = l.jobs[0].Job
	}
	rates, before := make(map[string]float64), make(map[string]mark)
	for _, j := range l.jobs {
		for _, s := range j.Sources {
			rows, ok := s.Summary.Rows.Get()
			if !ok {
				continue
			}
			key := j.Job + "/" + s.Name
			before[key] = mark{j.Fence, rows, l.at}
			// Within one attempt only: the next one counts from zero.
			if b, ok := t.before[key]; ok && b.fence == j.Fence && rows >= b.rows && l.at.After(b.at) {
				rates[key] = float64(rows-b.rows) / l.at.Sub(b.at).Seconds()
			}
		}
	}
	t.rates, t.before = rates, before
}

// style is how a line is meant.
type style string

// The styles, as the parameters of SGR.
const (
	bold style = "1"
	warn style = "33"
	bad  style = "31"
	dim  style = "2"
)

func (t *topScreen) text() string {
	var lines []string
	say := func(s style, format string, args ...any) {
		line := clip(fmt.Sprintf(format, args...), t.width)
		if !t.plain && s != "" {
			line = "\x1b[" + string(s) + "m" + line + "\x1b[0m"
		}
		lines = append(lines, line)
	}
	say(bold, "%-20s %-11s %-12s %9s %9s  %s", "JOB", "PHASE", "SOURCES", "DURABLE", "COMMITTED", "ROWS/S")
	for _, j := range t.now.jobs {
		here, s := " ", style("")
		if j.Job == t.chosen {
			here = ">"
		}
		if len(j.Why) > 0 {
			s = warn
		}
		say(s, "%s%-19s %-11s %-12s %9d %9d  %s", here, clip(j.Job, 19), j.Phase, clip(lifecycles(&j), 12), j.Epoch.Durable, j.Epoch.Committed, t.rate(&j))
	}
	if len(t.now.jobs) == 0 && t.now.err == nil {
		say("", "no jobs; `weir job submit FILE` makes one")
	}
	if i := t.index(); i >= 0 {
		t.drawJob(&t.now.jobs[i], say)
	}
	if t.now.err != nil {
		say(bad, "not read: %s", fault1(t.now.err))
	}
	bottom := 2
	if n := t.height - bottom; len(lines) > n && n > 0 {
		lines = append(lines[:n-1], clip(fmt.Sprintf("… %d more lines", len(lines)-n+1), t.width))
	}
	say(dim, "")
	say(dim, "up/down: job   q: end   = exact  ~ about  n/a cannot be said  ? not known")
	return strings.Join(lines, "\n")
}

func fault1(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }

func lifecycles(j *control.Status) string {
	var all []string
	for i := range j.Sources {
		if l := lifecycleText(&j.Sources[i]); !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return strings.Join(all, ",")
}

// rate is the sum over sources; a dash while one of them is not known.
func (t *topScreen) rate(j *control.Status) string {
	sum := 0.0
	for _, s := range j.Sources {
		r, ok := t.rates[j.Job+"/"+s.Name]
		if !ok {
			return "-"
		}
		sum += r
	}
	return fmt.Sprintf("%.0f", sum)
}

func (t *topScreen) drawJob(j *control.Status, say func(s style, format string, args ...any)) {
	say("", "")
	say(bold, "%s  %s  attempt %d  %s", j.Job, j.Phase, j.Fence, j.Guarantee.Effective)
	for _, w := range j.Why {
		say(bad, "why: %s", w)
	}
	if n := j.Epoch.InFlight; n > 0 {
		say("", "epoch %d in flight for %s; %d subtasks have not passed its barrier", n, j.At.Sub(j.Epoch.InFlightSince).Round(100*time.Millisecond), len(j.Epoch.WaitsFor))
	}
	for i := range j.Sources {
		s := &j.Sources[i]
		say(bold, "source %s  %s%s", s.Name, lifecycleText(s), healthText(s))
		if line := splitsLine(s); line != "" {
			say("", "  %s", line)
		}
		for _, r := range s.Readers {
			st := style("")
			if r.Stale {
				st = warn
			}
			say(st, "  %-12s rows %-12s behind %-18s report %s old", clip(r.Subtask, 12), marked(r.Rows), behindMark(r.Behind), r.Age.Round(100*time.Millisecond))
			for _, line := range beatLines(&r) {
				say(st, "    %s", line)
			}
		}
		for i := range s.Readers {
			if r := &s.Readers[i]; r.Retention != nil {
				st := style("")
				if in, ok := r.Forecast.In.Get(); ok && in <= progress.RunsOutSoon {
					st = warn
				}
				say(st, "  log kept %s", keptText(r))
			}
		}
		for _, x := range s.Tables {
			say("", "    %-34s %-12s rows %s %s", clip(x.Name, 34), x.Lifecycle, marked(x.Rows), strings.TrimSpace(paceText(&x)+" "+x.Note))
		}
	}
	for _, k := range j.Sinks {
		state, st := "takes commits", style("")
		if k.Waiting != nil {
			state, st = "takes no commits since "+k.Waiting.Since.Format(time.TimeOnly), bad
		}
		say(st, "sink %s (%s, %s)  %s%s", k.Name, k.Type, k.Mode, state, deadText(k.Dead, j.Job))
	}
}

// beatLines say in few columns what [delayLines] say.
func beatLines(r *progress.Reader) (lines []string) {
	if b, ok := r.Beat.Get(); ok {
		waited := ""
		if !b.Quiet {
			waited = "  waited " + short(b.Waited)
		}
		lines = append(lines, fmt.Sprintf("round trip =%s  read %s%s  landed %s  %s ago", short(b.Whole()), short(b.Read), waited, short(b.Landed),
			max(0, r.Observed.Sub(b.Back())).Round(time.Second)))
	}
	if p, ok := r.Pending.Get(); ok && r.UnderWay != nil {
		lines = append(lines, fmt.Sprintf("round trip under way for %s: %s", short(p), legText(r.UnderWay.Leg)))
	}
	return lines
}

// paceText is how fast a table is copied; empty while it is not.
func paceText(t *progress.Table) string {
	if _, ok := t.Rate.Get(); !ok {
		return ""
	}
	return marked(t.Rate) + " rows/s"
}

// splitsLine is how far the copy is; a bar only where its end is known.
func splitsLine(s *control.Source) string {
	e := s.Enumerator
	if e == nil || e.Assignment == report.NotApplicable {
		return ""
	}
	done, ok := e.Completed.Get()
	total, known := s.Summary.Total.Get()
	if !ok || !known || total == 0 {
		return fmt.Sprintf("splits read %s, at readers %s, prepared %s, tables not cut %s", marked(e.Completed), marked(e.Running), marked(e.PreparedUnsent), marked(e.TablesNotChunked))
	}
	const width = 30
	full := int(min(done, total) * width / total)
	return fmt.Sprintf("splits [%s%s] %d of %d", strings.Repeat("#", full), strings.Repeat(".", width-full), done, total)
}

// marked is a value with a short mark of its accuracy.
func marked[T any](v report.Value[T]) string {
	got, ok := v.Get()
	switch {
	case !ok && v.Accuracy() == report.Unsupported:
		return "n/a"
	case !ok:
		return "?"
	case v.Accuracy() == report.BestEffort:
		return fmt.Sprint("~", got)
	}
	return fmt.Sprint("=", got)
}

func behindMark(b progress.Behind) string {
	text := marked(b.Value)
	if _, ok := b.Value.Get(); ok {
		text += " " + string(b.Unit)
	}
	return text
}
