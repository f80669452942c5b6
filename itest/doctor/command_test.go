package doctor

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// clinic is a mesh in one process and the spec of a patient for its commands.
type clinic struct {
	*mesh.Mesh
	*patient
	file string
}

func visit(t *testing.T, p *patient) *clinic {
	t.Helper()
	c := &clinic{patient: p}
	c.Mesh = mesh.Up(t, []string{
		"SOURCE_URL=" + p.pg.URLAs(p.role, p.name), "TARGET_URL=" + p.pg.URLAs(p.role, p.target()),
	})
	c.write(t)
	return c
}

func (c *clinic) write(t *testing.T) {
	t.Helper()
	c.file = c.File(t, c.name+".yaml", c.yaml())
}

// silent fails when a password is in anything that was written.
func (c *clinic) silent(t *testing.T) {
	t.Helper()
	for where, text := range c.Outputs(t.Context(), t) {
		for _, password := range []string{c.role.Password, c.pg.Admin.Password} {
			if strings.Contains(text, password) {
				t.Errorf("a password is in %s", where)
			}
		}
	}
}

// TestTextOfTheDoctor is what a person sees of a job with which much is wrong.
func TestTextOfTheDoctor(t *testing.T) {
	t.Parallel()
	p := admit(t, server, "ill")
	p.exec(t, p.name, `ALTER ROLE ill NOREPLICATION; REVOKE SELECT ON t FROM ill;
		CREATE TABLE orders (id int PRIMARY KEY, cents int, euro int GENERATED ALWAYS AS (cents / 100) STORED); ALTER TABLE orders OWNER TO ill;
		CREATE TABLE events (at timestamptz, what text); ALTER TABLE events OWNER TO ill;
		CREATE UNLOGGED TABLE cache (k text PRIMARY KEY); CREATE VIEW recent AS SELECT * FROM orders;
		CREATE PUBLICATION `+lostLife+` FOR TABLE t`)
	p.exec(t, p.target(), "REVOKE CREATE ON DATABASE ill_target FROM ill")
	c := visit(t, p)
	a := c.Ask(t, "doctor", c.file)
	if a.Exit != fault.ExitEnvironment || a.Stderr != "" {
		t.Errorf("exit %d, want %d\n%s", a.Exit, fault.ExitEnvironment, a.Stderr)
	}
	compare(t, "doctor.golden", steady(a.Stdout))

	var checkup struct {
		Job              string
		Errors, Warnings int
		Findings         []preflight.Finding
	}
	asJSON := c.Ask(t, "doctor", c.file, "--json")
	if err := asJSON.Data(&checkup); err != nil {
		t.Fatal(err)
	}
	if asJSON.Exit != fault.ExitEnvironment || checkup.Errors == 0 || checkup.Errors != preflight.Count(checkup.Findings, preflight.Error) {
		t.Errorf("exit %d, %+v", asJSON.Exit, checkup)
	}

	p.exec(t, p.name, "ANALYZE orders")
	compare(t, "discover.golden", steady(c.Must(t, "discover", c.file).Stdout))
	compare(t, "discover_url.golden", steady(c.Must(t, "discover", "${SOURCE_URL}").Stdout))
	if a := c.Ask(t, "discover", p.pg.URLAs(harness.Role{Name: p.role.Name, Password: "wrong" + p.role.Password}, p.name)); a.Exit != fault.ExitEnvironment {
		t.Error(a)
	}
	if a := c.Ask(t, "doctor", c.File(t, "broken.yaml", strings.Replace(c.yaml(), "job: ill", "job: ILL", 1))); a.Exit != fault.ExitRequest {
		t.Error(a)
	}
	c.silent(t)
}

// TestGrantsMakeAFreshRoleWork runs the printed script for a role that has nothing, twice, and then the job.
func TestGrantsMakeAFreshRoleWork(t *testing.T) {
	t.Parallel()
	p := admit(t, server, "fresh")
	p.exec(t, p.name, `CREATE SCHEMA s; CREATE TABLE s."Order items" (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'one');
		CREATE TABLE s.secret (id int PRIMARY KEY, name text, pin text); INSERT INTO s.secret VALUES (1, 'ann', '1234');
		ALTER TABLE t OWNER TO postgres; ALTER DATABASE fresh OWNER TO postgres; ALTER ROLE fresh NOREPLICATION; REVOKE ALL ON SCHEMA public FROM fresh`)
	p.exec(t, p.target(), "REVOKE CREATE ON DATABASE fresh_target FROM fresh; REVOKE TEMPORARY ON DATABASE fresh_target FROM PUBLIC")
	p.source = []string{`columns: {exclude: ["s.secret.pin"]}`}
	c := visit(t, p)
	if a := c.Ask(t, "doctor", c.file); a.Exit != fault.ExitEnvironment {
		t.Fatalf("nothing is wrong: %s", a)
	}

	script := c.Must(t, "doctor", c.file, "--fix")
	compare(t, "grants.golden", script.Stdout)
	line := regexp.MustCompile(`needs this line: sources\.db\.(publication: \S+)`).FindStringSubmatch(script.Stdout)
	if line == nil {
		t.Fatalf("no line for the spec:\n%s", script)
	}
	var grants []struct{ Group, SQL string }
	if err := c.Must(t, "doctor", c.file, "--fix", "--json").Data(&grants); err != nil || len(grants) != 2 {
		t.Fatalf("%+v, %v", grants, err)
	}
	for range 2 { // running it again changes nothing
		p.exec(t, p.name, grants[0].SQL)
		p.exec(t, p.target(), grants[1].SQL)
	}

	p.source = append(p.source, line[1])
	c.write(t)
	a := c.Ask(t, "doctor", c.file, "--json")
	var checkup struct{ Findings []preflight.Finding }
	if err := a.Data(&checkup); err != nil || a.Exit != 0 || preflight.Count(checkup.Findings, preflight.Warning) > 0 {
		t.Errorf("after the grants: %v: %+v\n%s", err, ill(checkup.Findings, ""), a.Stderr)
	}
	c.Submit(t, p.job(), p.yaml())
	p.exec(t, p.name, `INSERT INTO s."Order items" VALUES (7, 'seven'); INSERT INTO t VALUES (2, 'two')`)
	c.CaughtUp(t, p.job())
	for sql, want := range map[string]string{
		"SELECT string_agg(v, ',' ORDER BY id) FROM copied.t":             "one,two", // one copied, one from the log
		`SELECT string_agg(v, ',' ORDER BY id) FROM copied."Order items"`: "seven",
		"SELECT string_agg(s::text, ',') FROM copied.secret s":            "(1,ann)",
	} {
		if got, err := harness.Value[string](t.Context(), p.pg, p.target(), sql); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", sql, got, err, want)
		}
	}
	// A running job is as healthy as one before its start, and what it made is no leftover.
	if a := c.Ask(t, "doctor", c.file); a.Exit != 0 || strings.Contains(a.Stdout, "leftover_slot") {
		t.Errorf("while the job runs: %s", a)
	}
	c.silent(t)
}

// TestInitWritesValidSpecs goes from a template to a spec that is taken, and does not overwrite it.
func TestInitWritesValidSpecs(t *testing.T) {
	t.Parallel()
	m := mesh.Up(t, nil)
	templates := regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}\S`).FindAllStringSubmatch(between(m.Must(t, "init", "--help").Stdout, "Templates:", "Usage:"), -1)
	if len(templates) < 3 {
		t.Fatalf("the help lists %d templates", len(templates))
	}
	for _, name := range templates {
		file := name[1] + ".yaml"
		m.Must(t, "init", "--template", name[1], "-o", file)
		m.Must(t, "validate", file)
		again := m.Ask(t, "init", "--template", name[1], "-o", file, "--json")
		f, err := again.Fault()
		if err != nil || again.Exit != fault.ExitRequest || !strings.Contains(f.Why, "not overwritten") {
			t.Errorf("written over: %v %s", err, again)
		}
	}
	if a := m.Ask(t, "init", "--template", "pg-to-pgg"); a.Exit != fault.ExitRequest || !strings.Contains(a.Stderr, "did you mean pg-to-pg?") {
		t.Error(a)
	}
	if text := m.Must(t, "init", "-o", "-").Stdout; !strings.HasPrefix(text, "# yaml-language-server: $schema=") {
		t.Errorf("no modeline:\n%s", text)
	}
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// steady replaces what depends on the server's version and on other tests.
func steady(s string) string {
	for _, r := range [][2]string{
		{`PostgreSQL \d+\.\d+`, "PostgreSQL NN"},
		{`\d+ of \d+ are used`, "N of M are used"},
		{`no slot keeps any log|slot \S+ keeps the most, \d+ \S+`, "KEPT"},
		{`no standby reads a slot of this server`, "no standby"},
		{`(?ms)^nats\n.*?\n\n`, ""}, // of the NATS server: see itest/inspect
	} {
		s = regexp.MustCompile(r[0]).ReplaceAllString(s, r[1])
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(slices.Clip(lines), "\n")
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}
