package cdcpostgres

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// columns hides columns of the job.
func (j *job) columns(t *testing.T, exclude []string, mask map[string]spec.Mask) {
	t.Helper()
	pattern := func(s string) spec.ColumnPattern {
		p, err := spec.ParseColumnPattern(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	j.salt = salt
	j.source.Columns.Salt = config.NewSecret("${SALT}")
	for _, s := range exclude {
		j.source.Columns.Exclude = append(j.source.Columns.Exclude, pattern(s))
	}
	for s, m := range mask {
		j.source.Columns.Mask = append(j.source.Columns.Mask, spec.MaskedColumns{Columns: pattern(s), Mask: m})
	}
}

const salt = "pepper-5d1"

// hashed is what hash makes of a value's text.
func hashed(s string) string {
	h := hmac.New(sha256.New, []byte(salt))
	h.Write([]byte(s))
	return hex.EncodeToString(h.Sum(nil))
}

func (j *job) count(t *testing.T, sql string) (n int) {
	t.Helper()
	conn, err := j.pg.Connect(t.Context(), j.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// takeBehind is take for rows that the log has behind a copy: epochs are committed until it was handed over.
func (a *attempt) takeBehind(t *testing.T, n int) []change {
	t.Helper()
	a.takeBehindAtLeast(t, n)
	return a.take(t, n)
}

func (a *attempt) takeBehindAtLeast(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		a.confirm(t, a.takeEpoch(t))
		a.mu.Lock()
		changed, there := a.changed, len(a.rows) >= n
		a.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-time.After(100 * time.Millisecond):
		}
	}
	a.until(t, "rows behind a copy", func() bool { return len(a.rows) >= n })
}

// wiretap keeps whatever leaves the source besides rows: messages, states, log lines.
type wiretap struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *wiretap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(b)
}

func (w *wiretap) wantNone(t *testing.T, secrets ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range secrets {
		if bytes.Contains(w.b.Bytes(), []byte(s)) {
			t.Errorf("%q left the source outside of rows", s)
		}
	}
}

// Values of hidden columns are nowhere behind the source, whichever way their rows came, and both ways agree. The hidden
// columns stand before, between and behind the others, and the key is one that only the server can order.
func TestHiddenColumns(t *testing.T) {
	t.Parallel()
	const ddl = `(ssn text, id text COLLATE "und-x-icu" NOT NULL, email varchar(40), balance numeric, phone text, note text, born date,
		PRIMARY KEY (id))`
	rowsOf := func(table, id, n string) string {
		return "INSERT INTO " + table + " VALUES ('canary-ssn-" + n + "', '" + id + "', 'canary-" + n + "@mail', 7351946" + n +
			", 'canary-phone-" + n + "', repeat('canary-note ', 1000) , '1971-02-03')"
	}
	for name, c := range map[string]struct {
		ddl    string
		own    bool // the publication
		listed bool // the server does not send what is excluded
	}{
		"own":         {"CREATE TABLE c " + ddl, true, true},
		"full":        {"CREATE TABLE c " + ddl + "; ALTER TABLE c REPLICA IDENTITY FULL", true, false},
		"given":       {"CREATE TABLE c " + ddl + "; CREATE PUBLICATION theirs FOR ALL TABLES", false, false},
		"partitioned": {"CREATE TABLE c " + ddl + " PARTITION BY RANGE (id); CREATE TABLE c1 PARTITION OF c DEFAULT", true, true},
		"mixed": {"CREATE TABLE c " + ddl + ` PARTITION BY RANGE (id); CREATE TABLE c1 PARTITION OF c DEFAULT;
			ALTER TABLE c1 REPLICA IDENTITY FULL`, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.c")
			var tap wiretap
			j.onTell = func(b []byte) { _, _ = tap.Write(b) }
			j.logger = slog.New(slog.NewTextHandler(&tap, &slog.HandlerOptions{Level: slog.LevelDebug}))
			j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: 2}
			j.columns(t, []string{"public.c.ssn", "public.c.note"}, map[string]spec.Mask{
				"public.*.email": spec.MaskHash, "public.c.balance": spec.MaskHash, "*.*.phone": spec.MaskRedact, "public.c.born": spec.MaskNull,
			})
			if !c.own {
				j.source.Publication = "theirs"
			}
			j.exec(t, c.ddl)
			for _, id := range []string{"a", "B", "c", "D", "e"} {
				j.exec(t, rowsOf("c", id, "1"))
			}
			a := j.start(t)
			got := a.take(t, 5)
			j.exec(t, "UPDATE c SET email = 'canary-2@mail' WHERE id = 'c'; UPDATE c SET id = 'f' WHERE id = 'D'; DELETE FROM c WHERE id = 'a'")
			j.exec(t, rowsOf("c", "g", "1"))
			changes := a.takeBehind(t, 5)
			_, _ = tap.Write(j.enum)
			_, _ = tap.Write(j.reader)
			tap.wantNone(t, "canary", "7351946", "1971-02-03", salt)

			for _, r := range append(got, changes...) {
				if strings.Contains(r.String(), "canary") || strings.Contains(r.String(), "7351946") || strings.Contains(r.String(), "1971") {
					t.Errorf("a hidden value is in a row: %s", r)
				}
				if len(r.cells) != 5 {
					t.Errorf("columns of %s", r)
				}
			}
			want := map[string]string{"email": hashed("canary-1@mail"), "balance": hashed("73519461"), "phone": "[redacted]", "born": "NULL"}
			for column, w := range want {
				if read, logged := got[0].cells[column], changes[4].cells[column]; read != w || logged != w {
					t.Errorf("%s: %q by the copy, %q by the log, want %q", column, read, logged, w)
				}
			}
			if changes[0].cells["email"] != hashed("canary-2@mail") || changes[0].cells["id"] != "c" {
				t.Errorf("update is %s", changes[0])
			}
			sent := j.count(t, "SELECT count(*) FROM pg_publication_tables WHERE tablename = 'c' AND 'ssn' = ANY(attnames)")
			if (sent == 0) != c.listed {
				t.Errorf("the server sends the excluded column: %v", sent != 0)
			}
		})
	}
}

// A hash is the same in the binary and in the text form of the log: a range has no binary form that we know.
func TestHiddenColumnsByLogForm(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"int", "int4range"} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.t")
			j.columns(t, nil, map[string]spec.Mask{"public.t.v": spec.MaskHash})
			j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text, w "+other+")")
			a := j.start(t)
			j.exec(t, "INSERT INTO t VALUES (1, 'é', NULL)")
			if got := a.take(t, 1)[0].cells["v"]; got != hashed("é") {
				t.Errorf("hash is %q", got)
			}
		})
	}
}

// What would hide a key, or nothing, is refused before anything is made at the server.
func TestHiddenColumnsRefused(t *testing.T) {
	t.Parallel()
	for name, hide := range map[string]func(t *testing.T, j *job){
		"key excluded": func(t *testing.T, j *job) { j.columns(t, []string{"public.t.id"}, nil) },
		"key null":     func(t *testing.T, j *job) { j.columns(t, nil, map[string]spec.Mask{"public.t.*": spec.MaskNull}) },
		"key hashed":   func(t *testing.T, j *job) { j.columns(t, nil, map[string]spec.Mask{"public.t.id": spec.MaskHash}) },
		"no column":    func(t *testing.T, j *job) { j.columns(t, []string{"public.t.emial"}, nil) },
		"empty salt": func(t *testing.T, j *job) {
			j.columns(t, nil, map[string]spec.Mask{"public.t.email": spec.MaskHash})
			j.salt = ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.t")
			j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, email text)")
			hide(t, j)
			_, err := j.open(t.Context())
			if err == nil {
				t.Fatal("taken")
			}
			if e := fault.Of(err); e.Code != fault.SrcColumns || strings.Contains(e.Remedy, "<") {
				t.Fatalf("got %v", err)
			}
			if made := j.count(t, "SELECT count(*) FROM pg_publication"); made != 0 {
				t.Errorf("%d publications", made)
			}
		})
	}
}
