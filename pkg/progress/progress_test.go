package progress_test

import (
	"encoding/json"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

var now = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

const twoSources = `
apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${SHOP_URL}", tables: ["public.*"], readers: 2}
  old: {type: mysql, url: "${OLD_URL}", tables: ["inventory.*"]}
sinks:
  warehouse: {from: [db, old], type: postgres, url: "${WAREHOUSE_URL}", schema: shop}
  lake: {from: [db, old], type: files, mode: append, files: {path: /tmp/lake, format: jsonl}}
`

func parse(tb testing.TB, text string) *spec.Job {
	tb.Helper()
	j, err := spec.Parse([]byte(text), "job.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return j
}

func lsn(n uint64) position.Position {
	return position.Position{Type: position.PostgresLSN, Version: 1, Fields: map[string]string{"lsn": position.LSN(n).String()}}
}

func binlog(at string) position.Position {
	return position.Position{Type: position.MySQLBinlog, Version: 1, Fields: map[string]string{position.FieldBinlog: at}}
}

func id(vertex string, index int) plan.SubtaskID {
	return plan.SubtaskID{Vertex: plan.VertexID(vertex), Index: index}
}

// at says that a reader has emitted everything before one position while its source's head was at another.
func at(consumed, head uint64) report.Reader {
	return report.Reader{
		Connector: "postgres", Lifecycle: report.Incremental, ActiveSplit: report.ExactOf("log"), Consumed: report.ExactOf(lsn(consumed)),
		Restored: report.ExactOf(lsn(1)), LastChange: report.ExactOf(now.Add(-time.Second)), Rows: report.ExactOf[uint64](10),
		Head: report.BestEffortOf(report.SourceHead{Position: lsn(head), At: now, Sequence: 3}),
	}
}

func copier(split string) report.Reader {
	r := report.Reader{
		Connector: "postgres", Copies: true, Lifecycle: report.Unknown, Head: report.UnsupportedOf[report.SourceHead](), Rows: report.ExactOf[uint64](5),
	}
	if split != "" {
		r.Lifecycle, r.ActiveSplit = report.Snapshot, report.ExactOf(split)
	}
	return r
}

func of(r report.Reader) report.Envelope { return report.Envelope{Reader: &r} }

// running is a job of which everything is known and all is well.
func running(tb testing.TB) progress.Observation {
	tb.Helper()
	o := progress.Observation{
		At: now, Spec: parse(tb, twoSources), Reports: map[string]progress.Sample{},
		Head: &job.Head{
			Job: "shop", Life: "aa", Phase: job.Running, Fence: 3, Committed: 7, NextEpoch: 8, Updated: now.Add(-time.Minute),
			Plan:    &job.PlanRef{Fence: 3},
			Durable: &job.Durable{Ref: epoch.Ref{Epoch: 7, Digest: "d7"}, Fence: 3, At: now.Add(-time.Second)},
		},
		Nodes: []job.NodeLease{{Node: "n1", Capabilities: []string{"source:postgres", "source:mysql", "sink:postgres", "sink:files"}}},
		Acks:  map[plan.SubtaskID]epoch.Ack{}, Commits: map[plan.SubtaskID]job.CommittedFact{},
		Plan: &plan.Deployment{Fence: 3, Placements: map[plan.SubtaskID]plan.Placement{
			id("db", 0): {Node: "n1"}, id("db", 1): {Node: "n1"}, id("db_enum", 0): {Node: "n1"}, id("warehouse", 0): {Node: "n2"},
		}},
	}
	o.Plan.Vertices = []plan.Vertex{
		{ID: "db_enum", Role: plan.Enumerator, Name: "db", Parallelism: 1},
		{ID: "db", Role: plan.Reader, Name: "db", Parallelism: 2},
		{ID: "warehouse", Role: plan.Writer, Name: "warehouse", Parallelism: 1},
		{ID: "warehouse_commit", Role: plan.Committer, Name: "warehouse", Parallelism: 1},
	}
	put(&o, "db-0", of(at(100, 100)), 0)
	put(&o, "db-1", of(copier("")), 0)
	my := at(0, 0)
	my.Connector, my.Consumed, my.Restored = "mysql", report.ExactOf(binlog("b.000042:1842")), report.ExactOf(binlog("b.000042:4"))
	my.Head = report.BestEffortOf(report.SourceHead{Position: binlog("b.000042:1842"), At: now, Sequence: 3})
	put(&o, "old-0", of(my), 0)
	return o
}

func put(o *progress.Observation, subtask string, e report.Envelope, age time.Duration) {
	e.Job, e.Subtask, e.Fence, e.Sequence, e.Observed = "shop", subtask, uint64(o.Head.Fence), 41, now.Add(-age)
	o.Reports[subtask] = progress.Sample{Envelope: e, Node: "n1", Age: age}
}

// change changes what the reader of the log of db reports.
func change(o *progress.Observation, f func(*report.Reader)) {
	const subtask = "db-0"
	s := o.Reports[subtask]
	r := *s.Reader
	f(&r)
	s.Reader = &r
	o.Reports[subtask] = s
}

func trouble(tb testing.TB, code fault.Code, why string) *job.Trouble {
	tb.Helper()
	raw, err := json.Marshal(fault.New(code, "sinks.w", why))
	if err != nil {
		tb.Fatal(err)
	}
	return &job.Trouble{Fault: raw, Since: now.Add(-4 * time.Second)}
}

// wide is a source with more readers than a spec allows.
type wide struct{ spec.SourceConfig }

func (wide) Parallelism() int { return progress.MaxTasks + 28 }
