package progress

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
)

// canaries are in every name and position that a database gives; none may be the label of a metric.
const canary = "CANARY"

const shopSpec = `
apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${SHOP_URL}", tables: ["public.*"], readers: 2}
  old: {type: mysql, url: "${OLD_URL}", tables: ["inventory.*"]}
sinks:
  warehouse: {from: [db, old], type: postgres, url: "${WAREHOUSE_URL}", schema: shop}
`

// world is a server, what a leader writes to it, and the service's instances.
type world struct {
	t        *testing.T
	srv      *meshtest.Server
	conn     *bus.Conn
	reg      *registry.Registry
	ctx      context.Context
	work     sync.WaitGroup
	revision uint64
	head     job.Head
}

// inBubble runs a test of the service on a real server in virtual time.
func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, srv: meshtest.StartServer(t, meshtest.ServerOptions{})}
		ctx, cancel := context.WithCancel(t.Context())
		w.ctx = ctx
		var err error
		if w.conn, err = bus.Connect(ctx, bus.Options{Name: "test", InProcess: w.srv}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			cancel()
			w.work.Wait()
			w.conn.Close()
			w.srv.Shutdown()
		}()
		if err := w.conn.EnsureBase(ctx, bus.BaseConfig{MemoryState: true}); err != nil {
			t.Fatal(err)
		}
		if w.reg, err = registry.Open(ctx, w.conn, 0); err != nil {
			t.Fatal(err)
		}
		f(w)
	})
}

// instance runs one progress service and returns its HTTP side and a way to stop it.
func (w *world) instance(name string, cfg Config) (http.Handler, func()) {
	w.t.Helper()
	tel, err := telemetry.Open(w.ctx, telemetry.Config{Service: "progress", Node: name, Logger: slog.New(slog.DiscardHandler), Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		w.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", tel.Handler())
	ctx, cancel := context.WithCancel(w.ctx)
	ready, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	health := app.NewHealth()
	w.work.Go(func() {
		defer close(done)
		err := Run(ctx, app.Env{
			Service: "progress", Node: name, HTTP: "127.0.0.1:8422", Telemetry: tel.For("progress", name), Health: health,
			Bus: bus.Options{Name: name, InProcess: w.srv}, Lookup: config.Lookup{}, Handle: mux.Handle,
			Ready: func() { once.Do(func() { close(ready) }) },
		}, cfg)
		if ctx.Err() == nil {
			w.t.Errorf("%s ended: %v", name, err)
		}
		once.Do(func() { close(ready) })
	})
	<-ready
	return mux, func() {
		cancel()
		<-done
	}
}

// lead writes the job's head.
func (w *world) lead(change func(h *job.Head)) {
	w.t.Helper()
	if w.revision == 0 {
		j, err := spec.Parse([]byte(shopSpec), "job.yaml")
		if err != nil {
			w.t.Fatal(err)
		}
		digest, err := w.reg.PutSpec(w.ctx, j)
		if err != nil {
			w.t.Fatal(err)
		}
		w.head = job.Head{Version: job.HeadVersion, Job: "shop", Life: "aa", Phase: job.Running, Term: 1, Fence: 1, NextEpoch: 1, SpecDigest: digest}
	}
	change(&w.head)
	w.head.Updated = time.Now()
	var err error
	if w.revision, err = w.reg.WriteHead(w.ctx, &w.head, w.revision); err != nil {
		w.t.Fatal(err)
	}
}

func lsn(text string) position.Position {
	return position.Position{Type: position.PostgresLSN, Version: 1, Fields: map[string]string{"lsn": text}}
}

// say publishes a node's batch.
func (w *world) say(node string, reports ...report.Envelope) {
	w.t.Helper()
	body, err := json.Marshal(report.Batch{Version: report.BatchVersion, Node: node, Incarnation: "1", At: time.Now(), Reports: reports})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.conn.PublishReport(w.ctx, node, body); err != nil {
		w.t.Fatal(err)
	}
}

// follower is a report of the reader of a log, copier one of a reader without it, chunks one of the enumerator.
func follower(fence, sequence uint64, at string) report.Envelope {
	return report.Envelope{Job: "shop", Subtask: "db-0", Fence: fence, Sequence: sequence, Observed: time.Now(), Reader: &report.Reader{
		Connector: "postgres", Lifecycle: report.CatchUp, ActiveSplit: report.ExactOf("log"), Consumed: report.ExactOf(lsn(at)), Rows: report.ExactOf(sequence),
		LastChange: report.ExactOf(time.Now()), LastEvent: report.ExactOf(time.Now()), RetainedBytes: report.BestEffortOf[int64](77),
		Retention: &report.Retention{Bytes: 1 << 30, Room: report.BestEffortOf[int64](1 << 29), Growth: report.BestEffortOf[int64](1 << 20)},
		Head:      report.BestEffortOf(report.SourceHead{Position: lsn("0/CAFE"), At: time.Now(), Sequence: 1}),
		Tables:    []report.Table{{Name: canary + ".orders", Lifecycle: report.CatchUp, Rows: report.ExactOf(sequence)}},
	}}
}

func copier(fence, sequence uint64) report.Envelope {
	return report.Envelope{Job: "shop", Subtask: "db-1", Fence: fence, Sequence: sequence, Observed: time.Now(), Reader: &report.Reader{
		Connector: "postgres", Copies: true, Lifecycle: report.Snapshot, ActiveSplit: report.ExactOf(canary + "#7"), Head: report.UnsupportedOf[report.SourceHead](),
	}}
}

func chunks(fence, sequence uint64) report.Envelope {
	return report.Envelope{Job: "shop", Subtask: "db_enum-0", Fence: fence, Sequence: sequence, Observed: time.Now(), Enumerator: &report.Enumerator{
		Connector: "postgres", Assignment: report.Assigning, Assigned: report.ExactOf[uint64](5), Completed: report.ExactOf[uint64](4), Running: report.ExactOf[uint64](1),
		PreparedUnsent: report.ExactOf[uint64](0), TablesNotChunked: report.ExactOf[uint64](1), Active: []report.Split{{ID: canary + "#7", Table: canary + ".orders"}},
	}}
}

func get(t *testing.T, h http.Handler, path string) (status int, body string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

func detail(t *testing.T, h http.Handler) (d progress.Detail) {
	t.Helper()
	status, body := get(t, h, "/v1/jobs/shop")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// keys are those of the bucket with their values.
func (w *world) keys() map[string]string {
	w.t.Helper()
	b, err := w.conn.Bucket(w.ctx, bus.ProgressBucket)
	if err != nil {
		w.t.Fatal(err)
	}
	es, err := b.GetMany(w.ctx, ">")
	if err != nil {
		w.t.Fatal(err)
	}
	out := make(map[string]string)
	for _, e := range es {
		out[e.Key] = string(e.Value)
	}
	return out
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// From a report on the bus to the answer: both collection paths, latest only, per attempt, cleaned up with the job.
func TestReportsBecomeAnswers(t *testing.T) {
	inBubble(t, func(w *world) {
		w.lead(func(*job.Head) {})
		h, _ := w.instance("p1", Default())
		if status, body := get(t, h, "/v1/jobs"); status != 200 || !strings.Contains(body, `"job":"shop"`) {
			t.Fatalf("%d %s", status, body)
		}
		if d := detail(t, h); d.CDC != nil {
			t.Errorf("before any report: %+v", d.CDC)
		}
		w.say("n1", follower(1, 41, "0/10"), chunks(1, 7))
		w.say("n2", copier(1, 3))
		pass(2 * time.Second)
		d := detail(t, h)
		if d.CDC == nil || len(d.CDC.Sources) != 2 {
			t.Fatalf("%+v", d.CDC)
		}
		db, old := d.CDC.Sources[0], d.CDC.Sources[1]
		if db.VertexID != "db" || db.ConnectorType != "PostgreSQL-CDC" || db.Lifecycle != report.CatchUp || db.Summary.FreshReportCount != 2 || len(db.Tasks) != 2 {
			t.Errorf("%+v", db)
		}
		if n := db.Summary.CompletedSplitCount; n == nil || *n != 4 || db.Accuracy["summary.completedSplitCount"] != report.Exact || db.Summary.FinalTotalSplitCount != nil {
			t.Errorf("%+v", db.Summary)
		}
		if p := db.Tasks[1].ActiveSplit; p == nil || p.TablePath == nil || *p.TablePath != canary+".orders" {
			t.Errorf("%+v", p)
		}
		if old.ConnectorType != "MySQL-CDC" || old.Summary.MissingReportCount != 1 || old.Summary.AssignedSplitCount != nil || old.Health.State != report.StaleReport {
			t.Errorf("%+v", old)
		}
		for _, key := range []string{"shop.db", "shop.db.reader.0", "shop.db.reader.1", "shop.db.enumerator", "shop.old"} {
			if !strings.Contains(w.keys()[key], `"fence":1`) {
				t.Errorf("%s holds %q", key, w.keys()[key])
			}
		}

		// A late report within the attempt changes nothing.
		w.say("n3", follower(1, 40, "0/F"))
		pass(2 * time.Second)
		if got := detail(t, h).Sources[0].Readers[0]; got.Sequence != 41 {
			t.Errorf("sequence %d is shown", got.Sequence)
		}
		// A new attempt begins with nothing, at sequence zero; what the old one still says is refused and counted.
		w.lead(func(h *job.Head) { h.Fence = 2 })
		w.say("n1", follower(1, 99, "0/99"))
		w.say("n2", copier(2, 0))
		pass(2 * time.Second)
		d = detail(t, h)
		if s := d.Sources[0]; len(s.Readers) != 1 || s.Readers[0].Subtask != "db-1" || s.Summary.Missing != 1 {
			t.Errorf("%+v", s)
		}
		if _, body := get(t, h, "/metrics"); !strings.Contains(body, `reason="old_fence"`) {
			t.Error("refused reports are not counted")
		}
		w.say("n1", follower(2, 0, "0/20"))
		pass(2 * time.Second)
		if got := detail(t, h).Sources[0].Readers[0]; got.Sequence != 0 || got.Subtask != "db-0" {
			t.Errorf("%+v", got)
		}
		if v := w.keys()["shop.db.reader.0"]; !strings.Contains(v, "0/20") {
			t.Errorf("the bucket holds %s", v)
		}

		// The job ends: its records go, and a late report brings nothing back.
		w.lead(func(h *job.Head) { h.Phase = job.Cancelled })
		pass(2 * time.Second)
		w.say("n1", follower(2, 5, "0/30"))
		pass(20 * time.Second)
		if k := w.keys(); len(k) > 0 {
			t.Errorf("left behind: %v", k)
		}
		if d := detail(t, h); d.CDC != nil || len(d.Sources[0].Readers) > 0 {
			t.Errorf("a job at rest shows %+v", d.CDC)
		}
		w.lead(func(h *job.Head) { h.Phase = job.Deleted })
		pass(2 * time.Second)
		if status, _ := get(t, h, "/v1/jobs/shop"); status != http.StatusNotFound {
			t.Errorf("a deleted job: %d", status)
		}
	})
}

// STIP-30 validation 11: no position, split or table is a label, whatever is reported; the metrics it names are there.
func TestNoMetricNamesWhatADatabaseNames(t *testing.T) {
	inBubble(t, func(w *world) {
		w.lead(func(*job.Head) {})
		w.say("n1", follower(1, 41, "0/CAFE"), chunks(1, 7))
		w.say("n2", copier(1, 3))
		h, _ := w.instance("p1", Default())
		pass(2 * time.Second)
		_, body := get(t, h, "/metrics")
		for _, secret := range []string{canary, "CAFE", "lsn", "orders", "#7", "log\""} {
			for line := range strings.Lines(body) {
				if strings.Contains(line, secret) && strings.HasPrefix(line, "weir") {
					t.Errorf("%q is in %s", secret, line)
				}
			}
		}
		for _, want := range []string{
			`weir_cdc_progress_report_age_seconds{connector_type="PostgreSQL-CDC",job="shop"`, `weir_cdc_progress_missing_reader_reports{`,
			`weir_cdc_progress_stale_reader_reports{`, `weir_cdc_progress_no_progress_duration_seconds{`, `lifecycle="CATCH_UP"`, `recovery_state="STEADY"`,
			`weir_cdc_progress_lifecycle{`, `weir_cdc_progress_recovery_state{`, `weir_cdc_progress_retained_bytes{`,
			`weir_cdc_progress_retained_limit_bytes{`, `task="0",vertex="db"} 512`, `weir_job_phase{job="shop"`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is missing", want)
			}
		}
	})
}

// Any number of instances may run: they show the same, and the newest report stays whoever writes.
func TestInstancesAgree(t *testing.T) {
	inBubble(t, func(w *world) {
		w.lead(func(*job.Head) {})
		a, stop := w.instance("p1", Default())
		b, _ := w.instance("p2", Default())
		for i := range uint64(20) {
			w.say("n1", follower(1, i, "0/10"))
			pass(700 * time.Millisecond)
		}
		pass(time.Second)
		if x, y := detail(t, a).Sources[0].Readers[0].Sequence, detail(t, b).Sources[0].Readers[0].Sequence; x != 19 || y != 19 {
			t.Errorf("sequences %d and %d", x, y)
		}
		if v := w.keys()["shop.db.reader.0"]; !strings.Contains(v, `"sequence":19`) {
			t.Errorf("the bucket holds %s", v)
		}
		stop()
		w.say("n1", follower(1, 20, "0/11"))
		pass(2 * time.Second)
		if v := w.keys()["shop.db.reader.0"]; !strings.Contains(v, `"sequence":20`) {
			t.Errorf("with one instance left the bucket holds %s", v)
		}
	})
}

// Whoever listens is told the whole state at once, then what changes, and what the leader tells.
func TestListeners(t *testing.T) {
	inBubble(t, func(w *world) {
		w.lead(func(*job.Head) {})
		h, _ := w.instance("p1", Default())
		ctx, cancel := context.WithCancel(w.ctx)
		rec := httptest.NewRecorder()
		var listening sync.WaitGroup
		listening.Go(func() {
			h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/jobs/shop/events", nil))
		})
		pass(1500 * time.Millisecond)
		notice, err := json.Marshal(job.Notice{Kind: job.NoticeRecovery, Job: "shop", Reason: job.Reason{Code: "WEIR-PG-001"}, At: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.conn.PublishEvent(w.ctx, "shop", "recovery", notice); err != nil {
			t.Fatal(err)
		}
		w.say("n1", follower(1, 41, "0/10"))
		pass(2 * time.Second)
		w.lead(func(h *job.Head) { h.Phase = job.Deleted })
		pass(3 * time.Second)
		cancel()
		listening.Wait()
		body := rec.Body.String()
		for _, want := range []string{"event: job\ndata: {\"job\":\"shop\"", "event: notice\n", "WEIR-PG-001", "0/10", "event: gone\n"} {
			if !strings.Contains(body, want) {
				t.Errorf("%q is not in the stream", want)
			}
		}
	})
}

// A bus that is away: answers are refused instead of getting old, and the process says that it is not ready.
func TestAnOldViewIsNotShown(t *testing.T) {
	inBubble(t, func(w *world) {
		w.lead(func(*job.Head) {})
		link := meshtest.NewLink(w.srv)
		mux := http.NewServeMux()
		health := app.NewHealth()
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		ready := make(chan struct{})
		w.work.Go(func() {
			_ = Run(ctx, app.Env{
				Service: "progress", Node: "p1", Telemetry: telemetry.Telemetry{Logger: slog.New(slog.DiscardHandler)}, Health: health,
				Bus: bus.Options{Name: "p1", InProcess: link}, Handle: mux.Handle, Ready: func() { close(ready) },
			}, Default())
		})
		<-ready
		if status, _ := get(t, mux, "/v1/jobs"); status != 200 || health.Err() != nil {
			t.Fatalf("%d, %v", status, health.Err())
		}
		link.Down()
		pass(10 * time.Second)
		if status, body := get(t, mux, "/v1/jobs"); status != http.StatusServiceUnavailable || !strings.Contains(body, "WEIR-API-005") {
			t.Errorf("%d %s", status, body)
		}
		if health.Err() == nil {
			t.Error("ready without a view")
		}
		link.Up()
		pass(20 * time.Second)
		if status, body := get(t, mux, "/v1/jobs"); status != 200 || health.Err() != nil {
			t.Errorf("%d %s, %v", status, body, health.Err())
		}
	})
}

// A webhook that cannot be used is refused at once; one that is away leaves its events in the outbox, which no sweep removes.
func TestWebhook(t *testing.T) {
	inBubble(t, func(w *world) {
		bad := Config{Interval: Default().Interval, Webhook: config.NewSecret("ftp://example.org/geheim")}
		env := app.Env{Service: "progress", Telemetry: telemetry.Telemetry{Logger: slog.New(slog.DiscardHandler)}}
		if err := Run(w.ctx, env, bad); fault.CodeOf(err) != fault.APIWebhookAddress || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v", err)
		}
		w.lead(func(h *job.Head) { h.Skipped = 9 })
		cfg := Default()
		cfg.Webhook = config.NewSecret("http://127.0.0.1:1/geheim")
		w.instance("p1", cfg)
		pass(10 * time.Second) // others are found meanwhile, and do not hold this one up
		w.lead(func(h *job.Head) { h.Phase = job.Cancelled })
		pass(40 * time.Second)
		keys := w.keys()
		if o := keys["_webhook.outbox"]; len(keys) != 1 || !strings.Contains(o, `"kind":"why"`) || !strings.Contains(o, "epochs_skipped") {
			t.Errorf("%v", keys)
		}
	})
}
