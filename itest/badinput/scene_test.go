package badinput

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/audit"
)

// scene is what the jobs of the test share.
type scene struct {
	mesh           *mesh.Mesh
	records        *mesh.Records
	source, target *harness.Postgres

	mu       sync.Mutex
	canaries []string
}

// trial is one thing that is wrong.
type trial struct {
	testing.TB
	*scene
}

// canary remembers a password; see B1.
func (s *scene) canary(password string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canaries = append(s.canaries, password)
	return password
}

// flow is one job: a table of a source database into a target database, each of its own.
type flow struct {
	*scene

	name           string
	source, target *harness.Postgres
	reader, writer harness.Role // logins at source and target
}

// setup says in what a flow differs from a good one.
type setup struct {
	source, target *harness.Postgres // other clusters than the scene's
	noReplication  bool
	noCreate       bool
}

// newFlow makes databases, logins and the table, and the files that hold the URLs. Nothing is submitted yet.
func (s *scene) newFlow(tb testing.TB, name string, with setup) *flow {
	tb.Helper()
	f := &flow{scene: s, name: name, source: s.source, target: s.target}
	if with.source != nil {
		f.source = with.source
	}
	if with.target != nil {
		f.target = with.target
	}
	ctx := tb.Context()
	attributes := "REPLICATION"
	if with.noReplication {
		attributes = ""
	}
	var err error
	if f.reader, err = f.source.CreateRole(ctx, name+"_reader", attributes); err != nil {
		tb.Fatal(err)
	}
	if f.writer, err = f.target.CreateRole(ctx, name+"_writer", ""); err != nil {
		tb.Fatal(err)
	}
	s.canary(f.reader.Password)
	s.canary(f.writer.Password)
	must := func(p *harness.Postgres, database, sql string) {
		tb.Helper()
		if err := p.Exec(ctx, database, sql); err != nil {
			tb.Fatal(err)
		}
	}
	must(f.source, "postgres", "CREATE DATABASE "+name+" OWNER "+f.reader.Name)
	must(f.source, name, `CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL); ALTER TABLE t OWNER TO `+f.reader.Name)
	must(f.target, "postgres", "CREATE DATABASE "+name)
	if !with.noCreate {
		must(f.target, "postgres", "GRANT CREATE ON DATABASE "+name+" TO "+f.writer.Name)
	}
	f.login(tb, "source", f.source.URLAs(f.reader, name))
	f.login(tb, "target", f.target.URLAs(f.writer, name))
	return f
}

// login stores the URL of one side.
func (f *flow) login(tb testing.TB, side, url string) {
	tb.Helper()
	f.mesh.Secret(tb, f.name+"-"+side, url)
}

// wrong is a login with a password that is not its own.
func (f *flow) wrong(r harness.Role) harness.Role {
	return harness.Role{Name: r.Name, Password: f.canary("WRONG" + rand.Text())}
}

func (f *flow) spec(tb testing.TB) string {
	tb.Helper()
	return fmt.Sprintf(`apiVersion: weir/v1
job: %s
epoch: {interval: 100ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: postgres
    url: %s
    tables: ["public.t"]
    snapshot: {mode: never}
sinks:
  copy:
    from: [db]
    type: postgres
    url: %s
    schema: copied
`, f.name, f.mesh.Reference(f.name+"-source"), f.mesh.Reference(f.name+"-target"))
}

func (f *flow) submit(tb testing.TB) {
	tb.Helper()
	f.mesh.Must(tb, "job", "submit", f.mesh.File(tb, f.name+".yaml", f.spec(tb)))
}

// run submits a job that nothing is wrong with yet and waits until a first row has arrived.
func (f *flow) run(tb testing.TB) {
	tb.Helper()
	f.submit(tb)
	f.mesh.Must(tb, "status", f.name, "--wait-for", "running", "--timeout", "60s")
	f.write(tb, "INSERT INTO t VALUES (1, 1)")
	f.equal(tb)
}

// repaired resumes the job after the repair, makes changes, and compares.
func (f *flow) repaired(tb testing.TB) {
	tb.Helper()
	f.mesh.Must(tb, "job", "resume", f.name)
	f.mesh.Must(tb, "status", f.name, "--wait-for", "running", "--timeout", "60s")
	f.write(tb, "INSERT INTO t SELECT i, i FROM generate_series(100, 199) i")
	f.equal(tb)
}

func (f *flow) write(tb testing.TB, sql string) {
	tb.Helper()
	if err := f.source.Exec(tb.Context(), f.name, sql); err != nil {
		tb.Fatal(err)
	}
}

// equal waits until the job has caught up and compares the table.
func (f *flow) equal(tb testing.TB) {
	tb.Helper()
	f.mesh.CaughtUp(tb, f.name)
	f.compare(tb)
}

func (f *flow) compare(tb testing.TB) {
	tb.Helper()
	outcomes, err := audit.CompareTables(tb.Context(), audit.CompareConfig{
		SourceURL: f.source.URL(f.name), TargetURL: f.target.URL(f.name),
		Tables: []audit.TablePair{{Source: "public.t", Target: "copied.t"}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if c := outcomes[0]; !c.Equal() || c.SourceRows == 0 {
		tb.Error(c)
	}
}

// fails waits until the job has FAILED and checks what a person is told: the code, and what to do.
func (f *flow) fails(tb testing.TB, code fault.Code) {
	tb.Helper()
	harness.Await(tb, 60*time.Second, "the job to fail", func(ctx context.Context) error {
		h, err := f.records.Now(ctx, f.name)
		if err == nil && h.Phase != job.Failed {
			err = fmt.Errorf("it is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
		}
		return err
	})
	s := f.mesh.Status(tb, f.name)
	if s.Phase != string(job.Failed) || s.Reason.Code != string(code) {
		tb.Fatalf("status: %s with %+v, want %s", s.Phase, s.Reason, code)
	}
	tellsRemedy(tb, code, s.Reason.Remedy)
	// As text, for eyes.
	if text := f.mesh.Must(tb, "status", f.name).Stdout; !strings.Contains(text, string(code)) || !strings.Contains(text, s.Reason.Remedy) {
		tb.Errorf("status does not say %s and what to do:\n%s", code, text)
	}
	f.inEvents(tb, code)
}

// tellsRemedy checks that a remedy is that of the code, with every name filled in.
func tellsRemedy(tb testing.TB, code fault.Code, remedy string) {
	tb.Helper()
	entry, ok := fault.Lookup(code)
	start, _, _ := strings.Cut(entry.Remedy, "<")
	if !ok || remedy == "" || !strings.HasPrefix(remedy, start) {
		tb.Errorf("the remedy of %s is %q, want one like %q", code, remedy, entry.Remedy)
	}
	if strings.ContainsAny(remedy, "<>") {
		tb.Errorf("the remedy of %s has names that nobody filled in: %q", code, remedy)
	}
}

// inEvents waits until the code is in the job's events.
func (f *flow) inEvents(tb testing.TB, code fault.Code) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 20*time.Second)
	defer cancel()
	w := f.records.Bus.WatchEvents(ctx, f.name, time.Time{})
	defer w.Close()
	for u := range w.Updates() {
		if strings.Contains(string(u.Entry.Value), string(code)) {
			return
		}
	}
	tb.Errorf("no event of job %s tells %s", f.name, code)
}
