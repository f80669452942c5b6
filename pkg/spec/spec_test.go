package spec_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/spec"
)

const full = `
apiVersion: weir/v1
job: shop
guarantee: exactly_once
epoch: {interval: 200ms, timeout: 30s, idle_interval: 5s, max_bytes: 64MiB, max_transaction_rows: 5000, max_uncommitted: 3}
restart: {backoff: 2s, cap: 3, window: 1h}
sources:
  db:
    type: postgres
    url: ${SHOP_URL:-postgres://localhost/shop}
    tables: ["public.*", "!public.audit_*", 'public."Odd.Name"']
    readers: 2
    before: true
    snapshot: {mode: never, chunk_rows: 100}
    slot: my_slot
    publication: my_pub
    heartbeat: 3s
    columns: {exclude: [public.a.ssn], mask: {"public.*.email": hash, public.a.b: null}, salt: "${SALT}"}
  made-up: {type: generator, rows: 10, rate: 5, tables: 2, columns: 9, keys: 7, deletes: 10, seed: 18446744073709551615, transaction_rows: 4, readers: 3}
sinks:
  warehouse:
    from: [db, made-up]
    type: postgres
    url: postgres://app:${PW}@${file:/etc/host}/wh
    schema: shop
    name: "{schema}_{table}"
    mode: changelog
    writers: 4
    existing: keep
    allow: [truncate]
  archive: {from: [db], type: files, mode: append, files: {path: "${DIR}/a", format: jsonl}}
  count: {from: [made-up], type: blackhole}
  lake:
    from: [db]
    type: iceberg
    warehouse: s3://bucket/lake
    catalog: postgres://app:${PW}@host/catalog
    namespace: shop
    name: "{schema}_{table}"
    changelog: "{schema}_{table}_log"
    partition: [day, bucket(16)]
    buckets: 16
    s3: {endpoint: "http://store:9000", region: eu-1, access_key: "${ACCESS}", secret_key: "${file:/run/secrets/key}"}
    allow: [truncate, drop_column]
  served:
    from: [db]
    type: iceberg
    warehouse: s3://bucket/lake
    catalog: https://catalog/api
    rest: {warehouse: analytics, credential: "weir:${SECRET}", oauth: "https://idp/token", scope: all, commit: ordered}
  images: {from: [db], type: iceberg, mode: changelog, warehouse: ./images}
  served-too: {from: [db], type: iceberg, warehouse: "s3://bucket/lake", catalog: "${CATALOG}", rest: {token: "${file:/run/secrets/token}"}}
`

func parse(t *testing.T, text string) *spec.Job {
	t.Helper()
	job, err := spec.Parse([]byte(text), "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestParseFull(t *testing.T) {
	j := parse(t, full)
	db := j.Sources[0].Config.(*spec.PostgresSource)
	if j.Name != "shop" || j.Guarantee != spec.ExactlyOnce || j.Epoch.MaxBytes != 64<<20 || j.Restart.Cap != 3 {
		t.Errorf("job: %+v", j)
	}
	if db.Parallelism() != 2 || !db.Before || db.Snapshot.ChunkRows != 100 || db.Slot != "my_slot" || len(db.Tables) != 3 {
		t.Errorf("source: %+v", db)
	}
	made, _ := j.Source("made-up")
	if g := made.Config.(*spec.GeneratorSource); g.Seed != 1<<64-1 || g.Parallelism() != 3 {
		t.Errorf("generator: %+v", g)
	}
	warehouse, ok := j.Sink("warehouse")
	pg := warehouse.Config.(*spec.PostgresSink)
	if !ok || warehouse.Mode != spec.Changelog || warehouse.Writers != 4 || !pg.Allows(spec.AllowTruncate) || pg.Existing != spec.ExistingKeep {
		t.Errorf("sink: %+v %+v", warehouse, pg)
	}
	if got := pg.TableName("public", "orders"); got != "public_orders" {
		t.Errorf("TableName = %s", got)
	}
	if s, _ := j.Sink("count"); s.Mode != spec.Append || s.Writers != 1 {
		t.Errorf("defaults of a sink: %+v", s)
	}
	if _, ok := j.Sink("db"); ok {
		t.Error("a source was found as a sink")
	}
}

func TestDefaults(t *testing.T) {
	j := parse(t, "{apiVersion: weir/v1, job: a, sources: {g: {type: generator}}, sinks: {s: {from: [g], type: blackhole}}}")
	e := j.Epoch
	if j.Guarantee != spec.ExactlyOnce || e.Interval.String() != "1s" || e.Timeout.String() != "1m" ||
		e.IdleInterval.String() != "10s" || e.MaxBytes != 256<<20 || e.MaxTransactionRows != 1_000_000 || e.MaxUncommitted != 2 {
		t.Errorf("got %+v", j)
	}
}

// S3, also through encoding/json, which escapes HTML.
func TestCanonicalRoundTrip(t *testing.T) {
	for _, text := range append(goodSpecs(), full) {
		j := parse(t, text)
		back := parse(t, string(j.Canonical()))
		if !reflect.DeepEqual(j, back) || back.Digest() != j.Digest() {
			t.Errorf("canonical form changed the job:\n%s\n%s", j.Canonical(), back.Canonical())
		}
		embedded, err := json.Marshal(json.RawMessage(j.Canonical()))
		if err != nil {
			t.Fatal(err)
		}
		if parse(t, string(embedded)).Digest() != j.Digest() {
			t.Errorf("embedding changed the job: %s", embedded)
		}
	}
}

func TestCanonicalRoundTripOfText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := rapid.StringMatching(`[a-zA-Z0-9 _.&<>'"\\/:#-]{1,20}`).Draw(t, "schema")
		table := rapid.StringMatching(`[a-zA-Z0-9_*&<>'\\é-]{1,12}`).Draw(t, "table")
		text := fmt.Sprintf("{apiVersion: weir/v1, job: a, sources: {g: {type: postgres, url: %s, tables: [%s], snapshot: {mode: never}}},"+
			"sinks: {s: {from: [g], type: postgres, url: \"${X}\", schema: %s}}}",
			quote("postgres://h/"+schema), quote("public."+table), quote(schema))
		j, err := spec.Parse([]byte(text), "")
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		back, err := spec.Parse(j.Canonical(), "")
		if err != nil || !reflect.DeepEqual(j, back) {
			t.Fatalf("%s\n%v", j.Canonical(), err)
		}
		if _, err := spec.Parse([]byte(j.Redacted()), ""); err != nil && !strings.Contains(j.Redacted(), "***") {
			t.Fatalf("the form for people cannot be read: %s\n%v", j.Redacted(), err)
		}
	})
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestDigest(t *testing.T) {
	a := parse(t, full)
	reordered := strings.Replace(full, "  archive: {from: [db], type: files, mode: append, files: {path: \"${DIR}/a\", format: jsonl}}\n", "", 1)
	reordered = strings.Replace(reordered, "sinks:\n", "sinks:\n  archive: {type: files, from: [db], files: {format: jsonl, path: '${DIR}/a'}, mode: append}\n", 1)
	if b := parse(t, reordered); b.Digest() != a.Digest() {
		t.Error("the order of the text changed the digest")
	}
	if b := parse(t, strings.Replace(full, "cap: 3", "cap: 4", 1)); b.Digest() == a.Digest() {
		t.Error("a changed value did not change the digest")
	}
	if len(a.Digest()) != 64 {
		t.Errorf("digest %q", a.Digest())
	}
	t.Setenv("PW", "hunter2") // S2
	if parse(t, full).Digest() != a.Digest() {
		t.Error("the value of a reference changed the digest")
	}
}

// S2: no way to print a job shows a literal secret; only the stored form holds it.
func TestCanary(t *testing.T) {
	j := parse(t, strings.ReplaceAll(full, "${PW}", "canary-5f1d"))
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "job", j, "sink", j.Sinks[0].Config)
	pg := j.Sinks[0].Config.(*spec.PostgresSink)
	object, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"redacted": j.Redacted(), "redacted json": string(j.RedactedJSON()), "%v": fmt.Sprintf("%v", *pg), "%+v": fmt.Sprintf("%+v", pg),
		"%#v": fmt.Sprintf("%#v", pg), "%s": fmt.Sprintf("%s", pg.URL), "%x": fmt.Sprintf("%x", pg.URL), "%q": fmt.Sprintf("%q", *pg),
		"json": string(object), "slog": log.String(),
	} {
		if strings.Contains(form, "canary") || strings.Contains(form, fmt.Sprintf("%x", "canary")) {
			t.Errorf("%s shows the secret: %s", name, form)
		}
	}
	if !strings.Contains(string(j.Canonical()), "canary-5f1d") {
		t.Error("the stored form lost the literal") // or this test proves nothing
	}
	if !strings.Contains(j.Redacted(), "${SHOP_URL:-***}") || !strings.Contains(j.Redacted(), "***${file:/etc/host}***") {
		t.Errorf("references are not shown:\n%s", j.Redacted())
	}
}

func TestLiteralPasswords(t *testing.T) {
	tests := []struct {
		url  string
		want bool
	}{
		{"${URL}", false},
		{"postgres://h/d", false},
		{"postgres://app@h/d", false},
		{"postgres://app:${PW}@h/d", false},
		{"postgres://app:${PW:-}@h/d", false},
		{"postgres://app:${file:/run/secrets/pw}@h:5432/d?sslmode=require", false},
		{"postgres://${USERPASS}@h/d", false},
		{"postgres://h/d?user=app&password=${PW}", false},
		{"postgres://app:pw@h/d", true},
		{"postgres://app:p/w@h/d", true},
		{"postgres://app:p@w@h/d", true},
		{"postgres://app:x${PW}@h/d", true},
		{"postgres://app:${PW:-pw}@h/d", true},
		{"${URL:-postgres://app:pw@h/d}", true},
		{"postgres://h/d?password=pw", true},
		{"postgres://h/d?sslmode=disable&pass%77ord=pw", true},
		{"postgres://:pw@h/d", true},
	}
	for _, tt := range tests {
		j := parse(t, strings.Replace(full, "postgres://app:${PW}@${file:/etc/host}/wh", quote(tt.url), 1))
		got := j.LiteralPasswords()
		if (len(got) > 0) != tt.want {
			t.Errorf("%s: %v, want %v", tt.url, got, tt.want)
		}
		if tt.want && got[0] != "sinks.warehouse.url" {
			t.Errorf("%s: path %s", tt.url, got[0])
		}
	}
}

func TestReferencesResolveLate(t *testing.T) {
	url := parse(t, full).Sinks[0].Config.(*spec.PostgresSink).URL
	l := config.Lookup{
		Env:  func(n string) (string, bool) { return map[string]string{"PW": "p$w"}[n], n == "PW" },
		File: func(string) ([]byte, error) { return []byte("db.example\n"), nil },
	}
	got, err := url.Resolve(l)
	if err != nil || got != "postgres://app:p$w@db.example/wh" {
		t.Errorf("got %s, %v", got, err)
	}
	if same, err := l.Resolve(url.Raw()); err != nil || same != got {
		t.Errorf("got %s, %v", same, err)
	}
}

func goodSpecs() []string {
	var out []string
	for _, tpl := range spec.Templates() {
		out = append(out, tpl.Text)
	}
	return out
}

func TestTemplates(t *testing.T) {
	all := spec.Templates()
	if len(all) < 4 {
		t.Fatalf("%d templates", len(all))
	}
	for _, tpl := range all {
		if !strings.HasPrefix(tpl.Text, spec.Modeline+"\n# "+tpl.Summary+"\n") || !strings.HasSuffix(tpl.Summary, ".") {
			t.Errorf("%s: does not begin with modeline and summary", tpl.Name)
		}
		if got := parse(t, tpl.Text).LiteralPasswords(); len(got) > 0 {
			t.Errorf("%s: passwords at %v", tpl.Name, got)
		}
	}
}
