package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/weir/internal/control"
)

func seen(at time.Time, rows uint64, total report.Value[uint64]) looked {
	s := control.Status{Job: "shop", Phase: job.Running, Fence: 3, Why: []string{"sink w takes no commits since " + strings.Repeat("long ", 40)}}
	s.Sources = []control.Source{{
		Name: "db", Lifecycle: report.Snapshot,
		Enumerator: &report.Enumerator{Assignment: report.Assigning, Completed: report.ExactOf[uint64](5), Running: report.ExactOf[uint64](1)},
		Readers:    []control.Reader{{Subtask: "db-0", Age: time.Minute, Stale: true, Behind: progress.Behind{Value: report.BestEffortOf[uint64](9), Unit: "bytes"}}},
		Tables:     []progress.Table{{Table: report.Table{Name: strings.Repeat("public.täble", 12), Lifecycle: report.Snapshot}}},
	}}
	s.Sources[0].Summary.Rows, s.Sources[0].Summary.Total = report.ExactOf(rows), total
	return looked{at: at, jobs: []control.Status{s, {Job: "other", Phase: job.Finished}}}
}

// 80 columns are enough, no colour is used that was not wanted, and a bar has an end that is known.
func TestTopDrawsWithinItsColumns(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	for _, size := range [][2]int{{80, 24}, {40, 8}, {200, 60}} {
		screen := topScreen{plain: true, width: size[0], height: size[1]}
		screen.take(seen(at, 100, report.ExactOf[uint64](10)))
		screen.take(seen(at.Add(2*time.Second), 300, report.ExactOf[uint64](10)))
		text := screen.text()
		lines := strings.Split(text, "\n")
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > size[0] {
				t.Errorf("%v: %d columns: %s", size, n, l)
			}
		}
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		if strings.Contains(text, "\x1b") {
			t.Errorf("%v: colours", size)
		}
		if size[0] >= 80 {
			for _, want := range []string{">shop", " other", "5 of 10", "why: sink w", "~9 bytes", "  100"} {
				if !strings.Contains(text, want) {
					t.Errorf("%v: no %q in\n%s", size, want, text)
				}
			}
		}
	}
	screen := topScreen{width: 80, height: 24}
	screen.take(seen(at, 100, report.Value[uint64]{}))
	text := screen.text()
	if strings.Contains(text, "[##") || !strings.Contains(text, "splits read =5, at readers =1, prepared ?") {
		t.Errorf("a bar without an end:\n%s", text)
	}
	if !strings.Contains(text, "\x1b[31mwhy") {
		t.Error("no colour where it was allowed")
	}
}

// Round trips and the rate of a copy are there in 80 columns.
func TestTopSaysDelaysAndRates(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	look := seen(at, 100, report.Value[uint64]{})
	r, x := &look.jobs[0].Sources[0].Readers[0], &look.jobs[0].Sources[0].Tables[0]
	r.Observed = at
	r.Beat = report.ExactOf(report.Beat{Began: at.Add(-12 * time.Second), Read: 3_120_000, Waited: 412 * time.Millisecond, Landed: 86_500_000, Epoch: 7})
	r.RoundTrip = report.ExactOf(501620 * time.Microsecond)
	r.UnderWay, r.Pending = &report.Way{Began: at.Add(-40 * time.Second), Leg: report.Landing}, report.ExactOf(40*time.Second)
	x.Name, x.Rate = "public.orders", report.BestEffortOf[uint64](1250)
	screen := topScreen{plain: true, width: 80, height: 40}
	screen.take(look)
	text := screen.text()
	for _, want := range []string{
		"    round trip =501.62ms  read 3.12ms  waited 412ms  landed 86.5ms  11s ago\n",
		"    round trip under way for 40s: in an epoch, not at every sink\n",
		"rows ? ~1250 rows/s\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	b, _ := r.Beat.Get()
	b.Quiet = true
	r.Beat, r.UnderWay, x.Rate = report.ExactOf(b), nil, report.Value[uint64]{}
	screen.take(look)
	if text := screen.text(); strings.Contains(text, "waited") || strings.Contains(text, "under way") || strings.Contains(text, "rows/s\n") {
		t.Errorf("what nobody waited for, and a rate that is not known:\n%s", text)
	}
}

// What was seen stays when it cannot be read again, and says so; another attempt counts from zero and has no rate.
func TestTopSaysWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	at := time.Now()
	screen := topScreen{plain: true, width: 80, height: 40}
	screen.take(seen(at, 100, report.Value[uint64]{}))
	next := seen(at.Add(time.Second), 5, report.Value[uint64]{})
	next.jobs[0].Fence = 4
	screen.take(next)
	if got := screen.rate(&screen.now.jobs[0]); got != "-" {
		t.Errorf("rate %s between two attempts", got)
	}
	screen.take(looked{err: errors.New("no answer")})
	if text := screen.text(); !strings.Contains(text, "not read: no answer") || !strings.Contains(text, "shop") {
		t.Errorf("%s", text)
	}
}

func TestTopKeys(t *testing.T) {
	t.Parallel()
	var m tea.Model = topModel{screen: topScreen{plain: true, width: 80, height: 24}, look: func() tea.Msg { return nil }}
	press := func(code rune) tea.Cmd {
		var c tea.Cmd
		m, c = m.Update(tea.KeyPressMsg{Code: code, Text: string(code)})
		return c
	}
	m, _ = m.Update(seen(time.Now(), 1, report.Value[uint64]{}))
	for i, want := range []string{"other", "shop", "other"} {
		press('j')
		if got := m.(topModel).screen.chosen; got != want { //nolint:forcetypeassert // it is one
			t.Errorf("press %d chooses %s", i, got)
		}
	}
	if c := press('q'); c == nil || fmt.Sprintf("%T", c()) != "tea.QuitMsg" {
		t.Error("q does not end")
	}
}
