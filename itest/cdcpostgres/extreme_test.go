package cdcpostgres

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/rows"
)

// O47: a transaction much larger than what may be held passes in bounded memory, and small ones meanwhile are not lost.
func TestLargeTransactionInBoundedMemory(t *testing.T) {
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE large (id int PRIMARY KEY, v text); CREATE TABLE small (id int PRIMARY KEY)")
	const n = 200_000 // 100 MB of text
	var peak uint64
	var large, small int
	done := make(chan struct{})
	j.discard = true
	j.onEmit = func(b *rows.Batch) {
		if b.Schema().Table() == "public.large" {
			large += b.NumRows()
		} else {
			small += b.NumRows()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		if large == n && small == 100 {
			close(done)
		}
	}
	a := j.start(t)
	conn := j.session(t)
	execOn(t, conn, "SET logical_decoding_work_mem = '64kB'; BEGIN; INSERT INTO large SELECT g, repeat('x', 500) FROM generate_series(1, 200000) g")
	for range 100 {
		j.exec(t, "INSERT INTO small SELECT count(*) FROM small")
	}
	execOn(t, conn, "COMMIT")
	select {
	case <-done:
	case <-time.After(3 * patience):
		t.Fatalf("%d large and %d small rows", large, small)
	}
	a.stop()
	if limit := uint64(96 << 20); peak > limit {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}
}

// The changes of partitions come under the name of their root, also of partitions made later.
func TestPartitions(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, `CREATE TABLE p (id int, day date, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`)
	a := j.start(t)
	j.exec(t, "INSERT INTO p VALUES (1, '2026-01-05', 'a'); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')")
	j.exec(t, "INSERT INTO p VALUES (2, '2026-02-05', 'b'); UPDATE p SET day = '2026-02-06' WHERE id = 1")
	wantRows(t, a.take(t, 4), "insert public.p day=2026-01-05 id=1 v=a", "insert public.p day=2026-02-05 id=2 v=b",
		"delete public.p day=2026-01-05 id=1 v=ABSENT", "insert public.p day=2026-02-06 id=1 v=a")
}

// A captured table that leaves the publication would lose changes without a word.
func TestTableLeavesThePublication(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
	a := j.start(t)
	a.takeEpoch(t)
	a.stop()
	j.exec(t, "ALTER PUBLICATION weir_shop_db_"+j.life+" DROP TABLE u")
	_, err := j.open(t.Context())
	wantFault(t, err, "WEIR-PG-014")
	// A table that is gone has nothing to lose.
	j.exec(t, "DROP TABLE u; INSERT INTO t VALUES (1)")
	a = j.start(t)
	wantRows(t, a.take(t, 1), "insert public.t id=1")
}

// A position that the server's log has not reached belongs to a server that was put back.
func TestServerPutBack(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	a.take(t, 1)
	a.takeEpoch(t)
	a.stop()
	edit := func(state []byte, key string, f func(map[string]any)) []byte {
		var s map[string]any
		if err := json.Unmarshal(state, &s); err != nil {
			t.Fatal(err)
		}
		f(s[key].(map[string]any))
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	reader, enum := j.reader, j.enum
	// The log's own state lies in the reader's part as text; a first digit of 9 makes it another position of that length.
	at := bytes.Index(reader, []byte(`"end":`)) + len(`"end":`)
	j.reader = slices.Clone(reader)
	j.reader[at] = '9'
	_, err := j.open(t.Context())
	wantFault(t, err, "WEIR-PG-028")
	j.reader, j.enum = reader, edit(enum, "system", func(m map[string]any) { m["identifier"] = "1" })
	_, err = j.open(t.Context())
	wantFault(t, err, "WEIR-PG-015")
	j.enum = edit(enum, "system", func(m map[string]any) { m["timeline"] = 7 })
	if version < 17 {
		_, err = j.open(t.Context())
		wantFault(t, err, "WEIR-PG-016")
		return
	}
	// Slots are synchronised to standbys since 17, so that ours belongs to the history of a promoted one, too.
	a = j.start(t)
	j.exec(t, "INSERT INTO t VALUES (2)")
	wantRows(t, a.take(t, 1), "insert public.t id=2")
}

// O49: a server that keeps the connection open and says nothing is found out.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	j := newJob(t, pg, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	a.take(t, 1)
	a.takeEpoch(t)
	if err := pg.Pause(); err != nil {
		t.Fatal(err)
	}
	err := a.failure(t)
	if err := pg.Resume(); err != nil {
		t.Fatal(err)
	}
	wantFault(t, err, "WEIR-PG-024")
	a.stop()
	j.exec(t, "INSERT INTO t VALUES (2)")
	a = j.start(t)
	wantRows(t, a.take(t, 1), "insert public.t id=2")
}
