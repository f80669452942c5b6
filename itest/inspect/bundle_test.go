package inspect

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
)

// secretJob copies a table whose keys and values are canaries, and sets aside a row that is one.
const secretJob = `apiVersion: weir/v1
job: secret
epoch: {interval: 250ms}
sources:
  db:
    type: postgres
    url: %s
    tables: ["public.t"]
    readers: 2
    snapshot: {mode: initial, chunk_rows: 64}
sinks:
  copy:
    from: [db]
    type: postgres
    url: %s
    schema: copied
    dlq: true
  lake:
    from: [db]
    type: files
    mode: append
    files: {path: %s, format: jsonl}
`

// canaryRow is in every key and every value.
const canaryRow = "CANARYROW"

// ⚑ A bundle of a job whose passwords, keys, values and dead letters are all canaries holds none of them, while the copy
// runs and behind it; and it has what somebody needs who helps.
func TestABundleHoldsNoSecretsAndNoRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	role, err := pg.CreateRole(ctx, "owner", "REPLICATION SUPERUSER")
	if err != nil {
		t.Fatal(err)
	}
	exec := func(database, sql string) {
		t.Helper()
		if err := pg.Exec(ctx, database, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("postgres", "CREATE DATABASE source")
	exec("postgres", "CREATE DATABASE target")
	exec("source", "CREATE TABLE t (id text PRIMARY KEY, v text NOT NULL)")
	exec("source", fmt.Sprintf("INSERT INTO t SELECT '%s-key-' || i, '%[1]s-value-' || i FROM generate_series(1, 20000) i", canaryRow))

	m := mesh.Start(t, mesh.Config{Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}})
	m.Secret(t, "source", pg.URLAs(role, "source"))
	m.Secret(t, "target", pg.URLAs(role, "target"))
	m.Submit(t, "secret", fmt.Sprintf(secretJob, m.Reference("source"), m.Reference("target"), filepath.Join(t.TempDir(), "lake")))
	s := newShell(t, m.URL)
	s.env = append(s.env, "NATS_CANARY="+role.Password)
	during := s.bundle(t, "during.tar.gz")

	m.CaughtUp(t, "secret")
	exec("target", fmt.Sprintf("ALTER TABLE copied.t ADD CHECK (v <> '%s-poison')", canaryRow))
	exec("source", fmt.Sprintf("INSERT INTO t VALUES ('%s-last', '%[1]s-poison')", canaryRow))
	harness.Await(t, 30*time.Second, "a dead letter", func(context.Context) error {
		for _, k := range m.Status(t, "secret").Sinks {
			if k.Dead > 0 {
				return nil
			}
		}
		return errors.New("none yet")
	})
	after := s.bundle(t, "after.tar.gz")

	canaries := append(encoded(canaryRow), canaryRow, role.Password)
	for when, files := range map[string]map[string]string{"during the copy": during, "behind it": after} {
		for name, text := range files {
			for _, c := range canaries {
				if at := strings.Index(text, c); at >= 0 {
					t.Errorf("%s: %s holds %s behind %q", when, name, c, text[max(0, at-80):at])
				}
			}
		}
	}
	for _, want := range []string{
		"index.json", "versions.json", "environment.json", "events.jsonl", "bus/survey.json", "bus/consumers.json", "bus/doctor.json", "bus/leases.json",
		"jobs/secret/head.json", "jobs/secret/intent.json", "jobs/secret/spec.yaml", "jobs/secret/plan.json", "jobs/secret/status.json",
		"jobs/secret/events.jsonl", "processes/discovery.json", "processes/sink-3/metrics.txt", "processes/sink-3/goroutines.txt",
		"processes/sink-3/heap.pb.gz", "processes/coordinator-1/readyz.txt",
	} {
		if after["weir-support/"+want] == "" {
			t.Errorf("%s is missing", want)
		}
	}
	epochs := 0
	for name := range after {
		if strings.HasPrefix(name, "weir-support/jobs/secret/epochs/") {
			epochs++
		}
	}
	if epochs == 0 || !strings.Contains(after["weir-support/jobs/secret/spec.yaml"], "copied") || !strings.Contains(after["weir-support/environment.json"], "NATS_CANARY") {
		t.Errorf("%d epochs, spec\n%s\nenvironment %s", epochs, after["weir-support/jobs/secret/spec.yaml"], after["weir-support/environment.json"])
	}
	if _, exit := s.run(t, "weir support-bundle secret -o after.tar.gz"); exit != fault.ExitRequest {
		t.Errorf("a file that is there is written over: exit %d", exit)
	}
	if _, exit := s.run(t, "weir support-bundle nobody -o nobody.tar.gz"); exit != fault.ExitRequest {
		t.Errorf("of no job: exit %d", exit)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "nobody.tar.gz")); !os.IsNotExist(err) {
		t.Errorf("a file is left: %v", err)
	}
}

// encoded is how a word looks inside of bytes that JSON holds, wherever it begins: what all encodings of it have in common.
func encoded(word string) []string {
	var all []string
	for shift := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + word))
		all = append(all, text[(8*shift+5)/6:len(text)-4])
	}
	return all
}

// bundle makes one and unpacks it.
func (s *shell) bundle(t *testing.T, file string) map[string]string {
	t.Helper()
	if out := s.must(t, "weir support-bundle secret -o "+file); !strings.Contains(out, file+": ") || strings.Contains(out, "missing:") {
		t.Errorf("%s", out)
	}
	f, err := os.Open(filepath.Join(s.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(b)
		if strings.HasSuffix(h.Name, ".gz") {
			files[h.Name+" unpacked"] = unpacked(t, b)
		}
	}
}

func unpacked(t *testing.T, b []byte) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
