package progress_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

var update = flag.Bool("update", false, "rewrite golden files")

// STIP-30 validation 10 and 12: two sources of two families in one job stay apart, in one shape.
func TestTwoFamiliesInOneShape(t *testing.T) {
	t.Parallel()
	o := running(t)
	put(&o, "db-1", of(copier("16385#8")), 6*time.Second)
	change(&o, func(r *report.Reader) {
		r.ActiveSplit, r.LastEvent = report.ExactOf("16385#7"), report.BestEffortOf(now.Add(-1500*time.Millisecond))
	})
	put(&o, "db_enum-0", report.Envelope{Enumerator: &report.Enumerator{
		Connector: "postgres", Assignment: report.Assigning, Assigned: report.ExactOf[uint64](12), Completed: report.ExactOf[uint64](11),
		Running: report.ExactOf[uint64](1), PreparedUnsent: report.ExactOf[uint64](3), TablesNotChunked: report.ExactOf[uint64](2),
		HandedOut: report.ExactOf[uint64](13), Active: []report.Split{{ID: "16385#7", Table: "public.products"}},
	}}, 0)
	s := progress.Build(o)
	got, err := json.MarshalIndent(map[string]any{"cdcProgress": progress.CDCOf(&s)}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "cdc_progress.json")
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(got, '\n'), want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Every field that the canonical response of STIP-30 has is there, under its name and of its kind.
func TestTheCanonicalShape(t *testing.T) {
	t.Parallel()
	canonical := read(t, "stip30_response.json")
	ours := read(t, "cdc_progress.json")
	var missing func(at string, want, got any) []string
	missing = func(at string, want, got any) []string {
		var all []string
		switch w := want.(type) {
		case map[string]any:
			g, ok := got.(map[string]any)
			if !ok {
				return []string{at}
			}
			for k, v := range w {
				switch {
				case at == ".cdcProgress.sources[0].tasks[0].currentConsumedPosition.values": // native
				case v == nil:
					if _, there := g[k]; !there {
						all = append(all, at+"."+k)
					}
				default:
					all = append(all, missing(at+"."+k, v, g[k])...)
				}
			}
		case []any:
			g, ok := got.([]any)
			if !ok || len(g) == 0 {
				return []string{at}
			}
			for i, v := range w {
				all = append(all, missing(fmt.Sprintf("%s[%d]", at, i), v, g[i])...)
			}
		default:
			if fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want) {
				return []string{fmt.Sprintf("%s is %v", at, got)}
			}
		}
		return all
	}
	if all := missing("", canonical, ours); len(all) > 0 {
		t.Errorf("not as in STIP-30: %s", strings.Join(all, ", "))
	}
}

func read(t *testing.T, name string) any {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWithoutADatabaseThereIsNoCDC(t *testing.T) {
	t.Parallel()
	o := running(t)
	o.Spec = parse(t, `
apiVersion: weir/v1
job: shop
sources: {gen: {type: generator, rate: 1}}
sinks: {out: {from: [gen], type: blackhole, mode: append}}
`)
	s := progress.Build(o)
	if c := progress.CDCOf(&s); c != nil {
		t.Errorf("%+v", c)
	}
	o = running(t)
	o.Reports = nil
	s = progress.Build(o)
	if c := progress.CDCOf(&s); c != nil {
		t.Errorf("before any report: %+v", c)
	}
}

// The detail is bounded, the summary is not.
func TestDetailIsBounded(t *testing.T) {
	t.Parallel()
	o := running(t)
	src := &o.Spec.Sources[0]
	const many = progress.MaxTasks + 28
	src.Config = wide{src.Config}
	for i := range many {
		put(&o, id("db", i).String(), of(copier("1#2")), 0)
	}
	s := progress.Build(o)
	c := progress.CDCOf(&s).Sources[0]
	if len(c.Tasks) != progress.MaxTasks || !c.DetailsTruncated || c.Summary.ReaderTaskCount != many || c.Summary.FreshReportCount != many {
		t.Errorf("%d tasks, truncated %t, %+v", len(c.Tasks), c.DetailsTruncated, c.Summary)
	}
	if other := progress.CDCOf(&s).Sources[1]; other.DetailsTruncated {
		t.Error("the other source is truncated too")
	}
}

func TestEpochsWithThoseThatWereGivenUp(t *testing.T) {
	t.Parallel()
	link := func(n epoch.ID) epoch.Link {
		return epoch.Link{Ref: epoch.Ref{Epoch: n}, Manifest: &epoch.Manifest{
			Epoch: n, Triggered: now, Completed: now.Add(time.Second), Sinks: map[string]epoch.SinkState{"w": {Staged: []epoch.Staged{{Rows: 4}, {Rows: 3}}}},
		}}
	}
	h := &job.Head{Job: "shop", NextEpoch: 9, Committed: 5, InFlight: &job.InFlight{Epoch: 8}}
	text := func(l progress.EpochList) (s string) {
		for _, e := range l.Epochs {
			s += fmt.Sprintf("%d %s %d; ", e.Epoch, e.State, e.Rows)
		}
		return s
	}
	links := []epoch.Link{link(2), link(5), link(6)}
	if got := text(progress.ListEpochs(h, links, 99)); got != "8 in_flight 0; 7 skipped 0; 6 durable 7; 5 committed 7; 4 skipped 0; 3 skipped 0; 2 committed 7; " {
		t.Error(got)
	}
	if l := progress.ListEpochs(h, links, 3); len(l.Epochs) != 3 || !l.DetailsTruncated {
		t.Errorf("%+v", l)
	}
	if l := progress.ListEpochs(&job.Head{NextEpoch: 1}, nil, 3); len(l.Epochs) != 0 || l.DetailsTruncated {
		t.Errorf("before the first: %+v", l)
	}
}
