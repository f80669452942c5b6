package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/spec"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
	"weir.dev/weir/services/sink"
)

var server *harness.Postgres

func TestMain(m *testing.M) {
	pg, err := harness.RunPostgres(context.Background(), harness.PostgresConfig{})
	if err != nil {
		panic(err)
	}
	server = pg
	m.Run()
	if err := pg.Close(); err != nil {
		panic(err)
	}
}

// patient is a job with a source and a target in one database each, and one role for both.
type patient struct {
	pg     *harness.Postgres
	name   string // of job, role and source database; the target database is name_target
	role   harness.Role
	source []string // further lines of the source
	sink   []string // further lines of the sink
	old    time.Duration
	url    string // of the source, when it is not the server's
}

// admit makes a job with which nothing is wrong: the role owns the source database with one table, and may make schemas
// in the target.
func admit(t *testing.T, pg *harness.Postgres, name string) *patient {
	t.Helper()
	p := &patient{pg: pg, name: name, old: time.Hour}
	var err error
	if p.role, err = pg.CreateRole(t.Context(), name, "REPLICATION"); err != nil {
		t.Fatal(err)
	}
	role, target := pgx.Identifier{name}.Sanitize(), pgx.Identifier{p.target()}.Sanitize()
	p.exec(t, "postgres", "GRANT pg_read_all_stats TO "+role) // of the transactions of other tests
	p.exec(t, "postgres", "CREATE DATABASE "+role+" OWNER "+role)
	p.exec(t, "postgres", "CREATE DATABASE "+target)
	p.exec(t, "postgres", "GRANT CREATE ON DATABASE "+target+" TO "+role)
	p.exec(t, name, "CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t OWNER TO "+role)
	return p
}

func (p *patient) target() string { return p.name + "_target" }

func (p *patient) exec(t *testing.T, database, sql string) {
	t.Helper()
	if err := p.pg.Exec(t.Context(), database, sql); err != nil {
		t.Fatalf("in %s: %s: %v", database, sql, err)
	}
}

func (p *patient) job() string { return strings.ReplaceAll(p.name, "_", "-") }

// fill replaces {role}, {db} and {target}.
func (p *patient) fill(sql string) string {
	return strings.NewReplacer(
		"{role}", pgx.Identifier{p.role.Name}.Sanitize(), "{target}", pgx.Identifier{p.target()}.Sanitize(), "{db}", pgx.Identifier{p.name}.Sanitize(),
	).Replace(sql)
}

func (p *patient) yaml() string {
	lines := []string{
		"apiVersion: weir/v1", "job: " + p.job(), "sources:", "  db:", "    type: postgres", "    url: ${SOURCE_URL}",
	}
	if !slices.ContainsFunc(p.source, func(l string) bool { return strings.HasPrefix(l, "tables:") }) {
		lines = append(lines, `    tables: ["public.*", "s.*"]`)
	}
	for _, l := range p.source {
		lines = append(lines, "    "+l)
	}
	lines = append(lines, "sinks:", "  copy:", "    from: [db]", "    type: postgres", "    url: ${TARGET_URL}", "    schema: copied")
	for _, l := range p.sink {
		lines = append(lines, "    "+l)
	}
	return strings.Join(lines, "\n") + "\n"
}

func (p *patient) resolve(ref string) (string, error) {
	switch {
	case ref == "${TARGET_URL}":
		return p.pg.URLAs(p.role, p.target()), nil
	case p.url != "":
		return p.url, nil
	}
	return p.pg.URLAs(p.role, p.name), nil
}

// examine is what `weir doctor` does, without a mesh that was asked but has no jobs.
func (p *patient) examine(t *testing.T) []preflight.Finding {
	t.Helper()
	j, err := spec.Parse([]byte(p.yaml()), p.name)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.yaml())
	}
	k := j.Sinks[0]
	source, err := cdcpostgres.Doctor(t.Context(), cdcpostgres.Checkup{
		Job: p.job(), Source: j.Sources[0], Resolve: p.resolve, Modes: []spec.Mode{k.Mode}, LivesKnown: true, Old: p.old,
	})
	if err != nil {
		t.Fatal(err)
	}
	target, err := sink.Doctor(t.Context(), sink.Checkup{
		Job: p.job(), LivesKnown: true, Sink: k, Resolve: p.resolve, Tables: source.Schemas,
	})
	if err != nil {
		t.Fatal(err)
	}
	all := append(source.Findings, target.Findings...)
	for i := range all {
		if err := all[i].Validate(); err != nil {
			t.Errorf("%+v: %v", all[i], err)
		}
		if text := fmt.Sprintf("%+v %+v", all[i], all[i].Remedy); strings.Contains(text, p.role.Password) {
			t.Errorf("the password is printed: %s", text)
		}
	}
	return all
}

// ill are the findings of a check that are not ok.
func ill(all []preflight.Finding, check string) []preflight.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f preflight.Finding) bool {
		return f.Status == preflight.OK || (check != "" && f.Check != check)
	})
}

// treat executes a remedy as it is printed: statements as the superuser, a line of the spec in its place. It reports
// whether the server has to be started again.
func (p *patient) treat(t *testing.T, f preflight.Finding) (restart bool) {
	t.Helper()
	database := f.Remedy.Database
	if database == "" {
		database = p.name
	}
	for _, sql := range f.Remedy.SQL {
		p.exec(t, database, sql)
	}
	if path, value, ok := strings.Cut(f.Remedy.Spec, ": "); ok {
		line := path[strings.LastIndexByte(path, '.')+1:] + ": " + value
		if strings.HasPrefix(path, "sources.") {
			p.source = append(p.source, line)
		} else {
			p.sink = append(p.sink, line)
		}
	}
	return f.Remedy.Restart
}

func (p *patient) restart(t *testing.T) {
	t.Helper()
	if err := p.pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// code is the code of the first finding.
func code(all []preflight.Finding) fault.Code {
	if len(all) == 0 {
		return ""
	}
	return all[0].Code
}
