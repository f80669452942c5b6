package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/weir/internal/control"
)

// O50: skew is shown as skew, and what is not known as unavailable; neither becomes a number.
func TestStatusShowsNoTimeThatIsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age  time.Duration
		want string
	}{
		"fresh":                       {1200 * time.Millisecond, "report 1.2s old"},
		"at once":                     {0, "report 0s old"},
		"the node's clock is ahead":   {-5 * time.Second, "report by a clock that is 5s ahead of this one"},
		"ahead by less than is shown": {-time.Microsecond, "report 0s old"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			showStatus(&out, control.Status{Sources: []control.Source{{
				Name: "db", Readers: []control.Reader{{Subtask: "db-0", Age: c.age, Reader: report.Reader{Lifecycle: report.Snapshot}}},
			}}})
			text := out.String()
			if !strings.Contains(text, c.want) || strings.Contains(text, "-5s") || strings.Contains(text, "1970") {
				t.Errorf("%q is not in\n%s", c.want, text)
			}
			for _, unknown := range []string{"rows unavailable", "at unavailable", "head unavailable", "log kept unavailable"} {
				if !strings.Contains(text, unknown) {
					t.Errorf("%q is not in\n%s", unknown, text)
				}
			}
		})
	}
}

// How far a table's copy is and how long its log is kept is said in words, and nothing is said of what is not known.
func TestStatusSaysSplitsAndLog(t *testing.T) {
	t.Parallel()
	if got := splitsText(nil); got != "" {
		t.Error(got)
	}
	if got, want := splitsText(&report.Splits{Completed: 12, Running: 2, Prepared: 5}), "splits 12 read, 2 being read, 5 waiting, more to be cut"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	table := progress.Table{Copied: report.ExactOf[uint64](4200)}
	if got := rateText(&table); got != "" {
		t.Error(got)
	}
	table.Rate = report.BestEffortOf[uint64](1250)
	if got, want := rateText(&table), "copied 4200, ~1250 rows/s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r := progress.Reader{}
	if got := keptText(&r); got != "unavailable" {
		t.Error(got)
	}
	r.RetainedBytes = report.BestEffortOf[int64](12 << 30)
	if got := keptText(&r); got != "~12.0 GiB" {
		t.Error(got)
	}
	r.Retention = &report.Retention{Bytes: 20 << 30}
	r.Forecast = progress.Forecast{Outlook: progress.RunsOut, In: report.BestEffortOf(3 * time.Hour)}
	if got, want := keptText(&r), "~12.0 GiB of 20.0 GiB, lost in ~3 h"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Delays are in words: by legs, and nothing of what nobody waits for.
func TestStatusSaysDelays(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	r := progress.Reader{Observed: now}
	if got := delayLines(&r); got != nil {
		t.Errorf("of nothing: %q", got)
	}
	r.Beat = report.ExactOf(report.Beat{Began: now.Add(-12 * time.Second), Read: 3_120_000, Waited: 412 * time.Millisecond, Landed: 86_500_000, Epoch: 7})
	r.RoundTrip, r.Pending = report.ExactOf(501_620*time.Microsecond), report.ExactOf(6*time.Second)
	r.UnderWay = &report.Way{Began: now.Add(-6 * time.Second), Leg: report.Landing}
	want := []string{
		"round trip 501.62ms, 11s ago: to the reader 3.12ms  for the barrier 412ms  to the sinks and back 86.5ms",
		"round trip under way for 6s: in an epoch, not at every sink",
	}
	if got := delayLines(&r); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	d := &progress.EpochDelay{Epoch: 7, Took: report.ExactOf(time.Second), Bus: report.BestEffortOf(20 * time.Millisecond), Stage: report.ExactOf(980 * time.Millisecond)}
	if got, want := epochDelayText(d), "epoch 7 took 1s: snapshot unavailable  bus ~20ms  stage 980ms; commit unavailable"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := epochDelayText(nil); got != "" {
		t.Error(got)
	}
}
