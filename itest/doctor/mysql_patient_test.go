package doctor

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	cdcmysql "weir.dev/weir/services/cdc-mysql"
	"weir.dev/weir/services/sink"
)

// myPatient is a job with a source and a target in one database each of one MySQL or MariaDB server, and one account for both.
type myPatient struct {
	my     *harness.MySQL
	name   string // of job, account and source database; the target database is name_target
	role   harness.Role
	tables string   // the patterns
	source []string // further lines of the source
	sink   []string // further lines of the sink
}

// sound are settings with which the doctor has nothing to say. Tests keep their data in memory all the same.
var sound = map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "max_allowed_packet": "64M"}

// admitMy makes a job with which nothing is wrong.
func admitMy(t *testing.T, my *harness.MySQL, name string) *myPatient {
	t.Helper()
	p := &myPatient{my: my, name: name, tables: `["{db}.*"]`}
	var err error
	if p.role, err = my.CreateUser(t.Context(), name, "REPLICATION SLAVE, REPLICATION CLIENT"); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "CREATE DATABASE {db}", "GRANT SELECT ON {db}.* TO {role}",
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, CREATE TEMPORARY TABLES ON {target}.* TO {role}",
		"CREATE TABLE {db}.t (id int PRIMARY KEY, v varchar(20))")
	return p
}

// fill replaces {role}, {db} and {target}.
func (p *myPatient) fill(s string) string {
	return strings.NewReplacer("{role}", "`"+p.name+"`@`%`", "{db}", p.name, "{target}", p.name+"_target").Replace(s)
}

func (p *myPatient) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if err := p.my.Exec(t.Context(), "", p.fill(sql)); err != nil {
			t.Fatalf("%s: %v", p.fill(sql), err)
		}
	}
}

func (p *myPatient) yaml() string {
	lines := []string{
		"apiVersion: weir/v1", "job: " + strings.ReplaceAll(p.name, "_", "-"), "sources:", "  db:", "    type: mysql", "    url: ${SOURCE_URL}",
		"    tables: " + p.fill(p.tables),
	}
	for _, l := range p.source {
		lines = append(lines, "    "+l)
	}
	lines = append(lines, "sinks:", "  copy:", "    from: [db]", "    type: mysql", "    url: ${TARGET_URL}", "    database: "+p.name+"_target")
	for _, l := range p.sink {
		lines = append(lines, "    "+l)
	}
	return strings.Join(lines, "\n") + "\n"
}

func (p *myPatient) examine(t *testing.T) (all []preflight.Finding, grants string) {
	t.Helper()
	j, err := spec.Parse([]byte(p.yaml()), p.name)
	if err != nil {
		t.Fatalf("%v\n%s", err, p.yaml())
	}
	resolve := func(string) (string, error) { return p.my.URLAs(p.role, ""), nil }
	k := j.Sinks[0]
	from, err := cdcmysql.Doctor(t.Context(), cdcmysql.Checkup{Job: j.Name, Source: j.Sources[0], Resolve: resolve, Modes: []spec.Mode{k.Mode}})
	if err != nil {
		t.Fatal(err)
	}
	target, err := sink.Doctor(t.Context(), sink.Checkup{Job: j.Name, LivesKnown: true, Sink: k, Resolve: resolve, Tables: from.Schemas})
	if err != nil {
		t.Fatal(err)
	}
	all = append(from.Findings, target.Findings...)
	for i := range all {
		if err := all[i].Validate(); err != nil {
			t.Errorf("%+v: %v", all[i], err)
		}
		if text := fmt.Sprintf("%+v %+v", all[i], all[i].Remedy); strings.Contains(text, p.role.Password) {
			t.Errorf("the password is printed: %s", text)
		}
	}
	return all, from.Grants + target.Grants
}

// ill are the findings of a check, in one group when that is named, that are not ok.
func (p *myPatient) ill(t *testing.T, group, check string) []preflight.Finding {
	t.Helper()
	all, _ := p.examine(t)
	return slices.DeleteFunc(ill(all, check), func(f preflight.Finding) bool { return group != "" && f.Group != group })
}

// refused proves that the start of the sink ends with the code that the doctor has found.
func (p *myPatient) refused(t *testing.T, want fault.Code) {
	t.Helper()
	j, err := spec.Parse([]byte(p.yaml()), p.name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := sink.Connectors(noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := all["mysql"].OpenCommitter(t.Context(), pkgsink.Config{
		Identity: source.Identity{Job: j.Name, Life: "first", Fence: 1}, Sink: j.Sinks[0],
		Resolve: func(string) (string, error) { return p.my.URLAs(p.role, ""), nil }, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil {
		err = c.Close()
	}
	if fault.CodeOf(err) != want {
		t.Errorf("the sink's start ends with %v, want %s", err, want)
	}
}

// treat executes a remedy as it is printed, statements as the administrator.
func (p *myPatient) treat(t *testing.T, f preflight.Finding) {
	t.Helper()
	p.exec(t, f.Remedy.SQL...)
	if path, value, ok := strings.Cut(f.Remedy.Spec, ": "); ok {
		p.sink = append(p.sink, path[strings.LastIndexByte(path, '.')+1:]+": "+value)
	}
}

// described are findings with their remedies, for a message.
func described(all []preflight.Finding) string {
	var b strings.Builder
	for i := range all {
		fmt.Fprintf(&b, "\n%+v %+v", all[i], all[i].Remedy)
	}
	return b.String()
}

// state is what a doctor must not change: every table of a server's users, and its settings.
func (p *myPatient) state(t *testing.T) string {
	t.Helper()
	s, err := p.my.Text(t.Context(), "", "SELECT group_concat(concat(table_schema, '.', table_name) ORDER BY 1) FROM information_schema.tables "+
		"WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lines are those of a script that are statements.
func lines(script string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(script), "\n"), func(l string) bool { return strings.HasPrefix(l, "--") })
}
