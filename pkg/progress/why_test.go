package progress_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// Whatever keeps a job from moving is named, with what it is about, at the latest 10 s after it began; of what only rests
// nothing is said.
func TestWhyNamesWhatDoesNotMove(t *testing.T) {
	t.Parallel()
	late := 10 * time.Second
	for name, tc := range map[string]struct {
		change func(*progress.Observation)
		kind   progress.FindingKind // none when empty
		about  string
		text   string
	}{
		"all is well": {func(*progress.Observation) {}, "", "", ""},
		"idle for an hour": {func(o *progress.Observation) {
			change(o, func(r *report.Reader) { r.LastChange = report.ExactOf(now.Add(-time.Hour)) })
		}, "", "", ""},
		"busy": {func(o *progress.Observation) { put(o, "db-0", of(at(100, 9000)), 0) }, "", "", ""},
		"slot lost": {func(o *progress.Observation) {
			o.Head.Phase, o.Head.Reason = job.Failed, job.Reason{Code: "WEIR-PG-010", Text: "the job's slot is gone", Remedy: "weir job submit"}
		}, progress.SlotLost, "shop", "failed: WEIR-PG-010 the job's slot is gone"},
		"log purged": {func(o *progress.Observation) {
			o.Head.Phase, o.Head.Reason = job.Failed, job.Reason{Code: "WEIR-MY-009", Text: "purged"}
		}, progress.SlotLost, "shop", "failed: WEIR-MY-009 purged"},
		"failed otherwise": {func(o *progress.Observation) {
			o.Head.Phase, o.Head.Reason = job.Failed, job.Reason{Code: "WEIR-SINK-009", Text: "no such column"}
		}, progress.Failed, "shop", "failed: WEIR-SINK-009 no such column"},
		"source down": {func(o *progress.Observation) {
			o.Head.Phase, o.Head.Reason = job.Starting, job.Reason{Code: "WEIR-PG-001", Text: "cannot reach the server", Since: now}
		}, progress.SourceDown, "shop", "starting: WEIR-PG-001 cannot reach the server"},
		"source down, and placed again": {func(o *progress.Observation) {
			o.Head.Phase, o.Head.Reason = job.Starting, job.Reason{Code: "PLACED"}
			o.Recovery = &job.Notice{Fence: 3, At: now.Add(-2 * time.Second), Reason: job.Reason{Code: "WEIR-PG-001", Text: "cannot reach the server"}}
		}, progress.SourceDown, "shop", "attempt 3 took the place of one that ended: WEIR-PG-001 cannot reach the server"},
		"nobody for a sink": {func(o *progress.Observation) {
			o.Head.Phase, o.Nodes = job.Starting, []job.NodeLease{
				{Capabilities: []string{"source:postgres", "source:mysql", "sink:files"}}, {Capabilities: []string{"sink:postgres"}, Leaving: true},
			}
		}, progress.NoNode, "sink:postgres", "no live process can run sink of type postgres: sink warehouse"},
		"nobody at all": {func(o *progress.Observation) { o.Nodes = []job.NodeLease{} }, progress.NoNode, "source:mysql", "source old"},
		"sink says why": {func(o *progress.Observation) {
			o.Commits[id("warehouse_commit", 0)] = job.CommittedFact{Epoch: 6, Waiting: trouble(t, fault.SinkUnreachable, "connection refused")}
		}, progress.SinkBlocked, "warehouse", "sink warehouse takes no commits since 2026-11-29T07:59:56Z: WEIR-SINK-001 cannot reach the target: connection refused"},
		"sink hangs": {func(o *progress.Observation) {
			o.Head.Committed, o.Head.Durable.At = 6, now.Add(-late)
			o.Commits[id("warehouse_commit", 0)] = job.CommittedFact{Epoch: 6}
			o.Commits[id("lake_commit", 0)] = job.CommittedFact{Epoch: 7}
		}, progress.SinkBlocked, "warehouse", "sink warehouse has not committed epoch 7, which is durable since 10s"},
		"epoch waits": {func(o *progress.Observation) {
			o.Head.InFlight = &job.InFlight{Epoch: 8, Triggered: now.Add(-late)}
			for _, s := range o.Plan.Subtasks() {
				if s != id("warehouse", 0) {
					o.Acks[s] = epoch.Ack{Fence: 3, Subtask: s, Epoch: 8}
				}
			}
		}, progress.EpochWaits, "warehouse-0", "epoch 8 is under way since 10s; it waits for warehouse-0 (writer of warehouse on n2)"},
		"epochs skipped": {func(o *progress.Observation) { o.Head.Skipped = 3 }, progress.EpochsSkipped, "shop", "3 epochs in a row were skipped"},
		"node silent":    {func(o *progress.Observation) { put(o, "db-0", of(at(100, 100)), late) }, progress.ReportOld, "db-0", "the report of db-0 is 10s old"},
		"reader missing": {func(o *progress.Observation) { delete(o.Reports, "old-0") }, progress.ReportMissing, "old", "1 of 1 readers of old do not report"},
		"dead letters fill": {func(o *progress.Observation) {
			o.Letters, o.Filling = map[string]uint64{"warehouse": 12}, map[string]uint64{"warehouse": 5}
		}, progress.LettersFill, "warehouse", "sink warehouse has set 5 rows aside within a minute, 12 dead letters are there"},
		"stalled": {func(o *progress.Observation) {
			put(o, "db-0", of(at(100, 900)), 0)
			change(o, func(r *report.Reader) { r.LastChange = report.ExactOf(now.Add(-time.Minute)) })
		}, progress.SourceStalled, "db", "source db: db-0 has been at one position for 1m0s: its source is seen 800 bytes ahead, and nothing behind it waits"},
		"a reader waits": {func(o *progress.Observation) {
			change(o, func(r *report.Reader) {
				r.Waits = []report.Wait{{Since: now.Add(-time.Minute), What: "the disk"}, {Since: now, What: "the line"}}
			})
		}, progress.SourceWaits, "db-0", "db-0 waits for its source since 2026-11-29T07:59:00Z: the disk"},
		"at rest": {func(o *progress.Observation) {
			o.Head.Phase, o.Head.Skipped, o.Nodes = job.Finished, 9, []job.NodeLease{}
		}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := running(t)
			tc.change(&o)
			s := progress.Build(o)
			if tc.kind == "" {
				if len(s.Why) > 0 {
					t.Fatalf("it is said to wait: %q", s.Why)
				}
				return
			}
			if !slices.ContainsFunc(s.Findings, func(f progress.Finding) bool {
				return f.Kind == tc.kind && f.About == tc.about && !f.Note && strings.Contains(f.Text, tc.text)
			}) {
				t.Errorf("no %s of %s in %+v", tc.kind, tc.about, s.Findings)
			}
			if !slices.ContainsFunc(s.Why, func(w string) bool { return strings.Contains(w, tc.text) }) {
				t.Errorf("%q is not in %q", tc.text, s.Why)
			}
		})
	}
}

// STIP-30 validation 7: a position that rests is stalled by nobody's inference: not when the source is idle, not when it is
// not known where the source is, and not while something behind the reader waits.
func TestARestingPositionIsNotStalled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*progress.Observation)
		want   report.Health
	}{
		"idle": {func(*progress.Observation) {}, report.Healthy},
		"head unknown": {func(o *progress.Observation) {
			change(o, func(r *report.Reader) { r.Head = report.Value[report.SourceHead]{} })
		}, report.NoProgress},
		"other family":      {func(o *progress.Observation) { headAt(o, binlog("b.000042:9")) }, report.NoProgress},
		"ahead":             {func(o *progress.Observation) { headAt(o, lsn(900)) }, report.Stalled},
		"ahead, just moved": {func(o *progress.Observation) { headAt(o, lsn(900)); rests(o, time.Second) }, report.Healthy},
		"sink down": {func(o *progress.Observation) {
			headAt(o, lsn(900))
			o.Commits[id("warehouse_commit", 0)] = job.CommittedFact{Waiting: trouble(t, fault.SinkUnreachable, "x")}
		}, report.NoProgress},
		"epoch waits": {func(o *progress.Observation) {
			headAt(o, lsn(900))
			o.Head.InFlight = &job.InFlight{Epoch: 8, Triggered: now.Add(-time.Minute)}
		}, report.NoProgress},
		"not committed": {func(o *progress.Observation) {
			headAt(o, lsn(900))
			o.Head.Committed, o.Head.Durable.At = 6, now.Add(-time.Minute)
		}, report.NoProgress},
		"report old": {func(o *progress.Observation) { headAt(o, lsn(900)); age(o, time.Minute) }, report.StaleReport},
		"never moved": {func(o *progress.Observation) {
			headAt(o, lsn(900))
			change(o, func(r *report.Reader) { r.LastChange = report.Value[time.Time]{} })
		}, report.Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := running(t)
			rests(&o, time.Hour)
			tc.change(&o)
			s := progress.Build(o).Sources[0]
			if s.Health.State != tc.want {
				t.Errorf("%s: %s", s.Health.State, s.Health.Reason)
			}
			if err := s.State().Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func headAt(o *progress.Observation, p position.Position) {
	change(o, func(r *report.Reader) {
		r.Head = report.BestEffortOf(report.SourceHead{Position: p, At: now, Sequence: 9})
	})
}

func rests(o *progress.Observation, d time.Duration) {
	change(o, func(r *report.Reader) { r.LastChange = report.ExactOf(now.Add(-d)) })
}

func age(o *progress.Observation, d time.Duration) {
	s := o.Reports["db-0"]
	s.Age = d
	o.Reports["db-0"] = s
}
