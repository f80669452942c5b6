package verify

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/contract"
	"weir.dev/weir/services/weir/verify"
)

// arguments of the run that has to pass.
const arguments = "--failure task-crash,checkpoint-restore,jobmanager-restart,savepoint-restore,sink-commit-fault --seeds 1 --rate 60"

// stand is two databases and the program.
type stand struct {
	weir           string
	source, target *harness.Postgres
	from, to       string   // URLs
	secrets        []string // in them
	env            []string
}

func begin(t *testing.T) stand {
	t.Helper()
	s := stand{
		weir:   harness.BuildBinary(t, "weir.dev/weir/services/weir/cmd/weir"),
		source: harness.StartPostgres(t, harness.PostgresConfig{}),
		target: harness.StartPostgres(t, harness.PostgresConfig{}),
	}
	s.from, s.to = s.source.URL("postgres"), s.target.URL("postgres")
	s.secrets = []string{s.source.Admin.Password, s.target.Admin.Password}
	return s
}

// verify runs the command and returns what it printed, its exit code and its report.
func (s stand) verify(t *testing.T, args ...string) (out string, exit int, report verify.Report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "eo.json")
	cmd := exec.CommandContext(t.Context(), s.weir, append([]string{
		"verify", "--source", s.from, "--target", s.to, "--report", file,
	}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), s.env...)
	b, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	t.Logf("%s", b)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := contract.Load(filepath.Join("..", "..", "schemas"))
	if err != nil {
		t.Fatal(err)
	}
	if err := schemas.Validate("verification", text); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	for _, secret := range s.secrets {
		if strings.Contains(string(text)+string(b), secret) {
			t.Error("a password is shown")
		}
	}
	return string(b), cmd.ProcessState.ExitCode(), report
}

// wantNothingLeft checks that the command has dropped what it made.
func (s stand) wantNothingLeft(t *testing.T) {
	t.Helper()
	for _, db := range []*harness.Postgres{s.source, s.target} {
		for _, sql := range []string{
			`SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'wv%'`,
			"SELECT count(*) FROM pg_replication_slots", "SELECT count(*) FROM pg_publication",
		} {
			if n, err := harness.Value[int](t.Context(), db, "postgres", sql); err != nil || n != 0 {
				t.Errorf("%s: %d, %v", sql, n, err)
			}
		}
	}
}

func TestCertificate(t *testing.T) {
	s := begin(t)
	args := arguments
	if more := os.Getenv("ITEST_VERIFY"); more != "" {
		args = more
	}
	s.wantPassed(t, 2, strings.Fields(args)...)
	s.wantNothingLeft(t)
}

// TestLake is the certificate for Iceberg tables, from MySQL; ClickHouse reads them too. Its classes by ITEST_VERIFY_LAKE.
func TestLake(t *testing.T) {
	modules, err := harness.ClickHouse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	source, dir := harness.StartMySQL(t, harness.MySQLConfig{}), t.TempDir()
	s := stand{
		weir: harness.BuildBinary(t, "weir.dev/weir/services/weir/cmd/weir"), from: source.URL(""), to: "file://" + dir,
		secrets: []string{source.Admin.Password}, env: []string{"NODE_PATH=" + modules},
	}
	args := "--failure task-crash --rate 60 --judge"
	if more := os.Getenv("ITEST_VERIFY_LAKE"); more != "" {
		args = more + " --judge"
	}
	for _, r := range s.wantPassed(t, 1, strings.Fields(args)...).Results {
		if !r.Judged {
			t.Errorf("%s: ClickHouse was not asked", r.Class)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left in the lake: %v, %v", left, err)
	}
	if n, err := source.Text(t.Context(), "", "SELECT concat(count(*)) FROM information_schema.schemata WHERE schema_name LIKE 'wv%'"); err != nil || n != "0" {
		t.Errorf("left at the source: %s, %v", n, err)
	}
}

// TestToMySQL is the certificate from MariaDB to MySQL. Its classes by ITEST_VERIFY_MYSQL.
func TestToMySQL(t *testing.T) {
	source, target := harness.StartMariaDB(t, harness.MySQLConfig{}), harness.StartMySQL(t, harness.MySQLConfig{})
	s := stand{
		weir: harness.BuildBinary(t, "weir.dev/weir/services/weir/cmd/weir"), from: source.URL(""), to: target.URL(""),
		secrets: []string{source.Admin.Password, target.Admin.Password},
	}
	args := "--failure sink-commit-fault --rate 60"
	if more := os.Getenv("ITEST_VERIFY_MYSQL"); more != "" {
		args = more
	}
	report := s.wantPassed(t, 2, strings.Fields(args)...)
	if !strings.HasPrefix(report.Claim, "MariaDB -> weir -> MySQL") {
		t.Errorf("the claim is %q", report.Claim)
	}
	for _, server := range []*harness.MySQL{source, target} {
		if n, err := server.Text(t.Context(), "", "SELECT concat(count(*)) FROM information_schema.schemata WHERE schema_name LIKE 'wv%'"); err != nil || n != "0" {
			t.Errorf("left at a server: %s, %v", n, err)
		}
	}
}

// wantPassed verifies, and checks that the report says all that it has to say; so many sinks have ledgers and readers.
func (s stand) wantPassed(t *testing.T, sinks int, args ...string) verify.Report {
	t.Helper()
	out, exit, report := s.verify(t, args...)
	if exit != 0 || !report.Passed || len(report.Results) == 0 {
		t.Errorf("exit %d, %d results", exit, len(report.Results))
	}
	for _, c := range report.Classes {
		if !strings.Contains(out, c.Name) || c.Runs == 0 || c.Durable == nil || c.Reconciled == nil {
			t.Errorf("%+v", c)
		}
	}
	for _, r := range report.Results {
		if len(r.Faults) == 0 || r.Events == nil || r.Events.Source == 0 || r.Events.Source != r.Events.Target || len(r.Ledgers) != sinks || len(r.Readers) != sinks {
			t.Errorf("%+v", r)
		}
		for _, f := range r.Faults {
			if f.Evidence == "" || f.Before == 0 || f.After <= f.Before {
				t.Errorf("%s: %+v", r.Class, f)
			}
		}
	}
	return report
}

// TestAuditFails writes a change to the changelog a second time, and a row of nobody into the copy, while the class runs: it fails, by
// name, with exit code 4.
func TestAuditFails(t *testing.T) {
	s := begin(t)
	spoilt := make(chan error, 1)
	go func() { spoilt <- s.spoil(t.Context()) }()
	out, exit, report := s.verify(t, "--failure", "task-crash", "--rate", "60")
	if err := <-spoilt; err != nil {
		t.Fatal(err)
	}
	if exit != 4 || report.Passed || !strings.Contains(out, "WEIR-CLI-005") || !strings.Contains(out, "failed: task-crash") {
		t.Errorf("exit %d, passed %t", exit, report.Passed)
	}
	r := report.Results[0]
	if r.Events == nil || r.Events.Multiset || r.Rows == nil || r.Rows.Extra != 1 {
		t.Errorf("%+v %+v", r.Events, r.Rows)
	}
	if !slices.ContainsFunc(r.Findings, func(f string) bool { return strings.Contains(f, "too often") }) {
		t.Errorf("%q", r.Findings)
	}
	s.wantNothingLeft(t)
	if err := os.RemoveAll(r.Log); err != nil || r.Log == "" {
		t.Errorf("logs at %q, %v", r.Log, err)
	}
}

// spoil waits for the scratch schemas and harms them as soon as they hold rows.
func (s stand) spoil(ctx context.Context) error {
	conn, err := s.target.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err = conn.Exec(ctx, `DO $$ DECLARE s name; n bigint; BEGIN
			SELECT replace(nspname, '_log', '') INTO STRICT s FROM pg_namespace WHERE nspname LIKE 'wv%\_log';
			EXECUTE format('INSERT INTO %I.customers SELECT * FROM %I.customers ORDER BY _txn, _ord LIMIT 1', s || '_log', s || '_log');
			GET DIAGNOSTICS n = ROW_COUNT;
			ASSERT n = 1;
			EXECUTE format('INSERT INTO %I.customers SELECT (jsonb_populate_record(c, ''{"id": -1}'')).* FROM %I.customers c LIMIT 1',
				s || '_copy', s || '_copy');
			GET DIAGNOSTICS n = ROW_COUNT;
			ASSERT n = 1;
		END $$`)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
