package cdcpostgres

import (
	"testing"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// Keys whose order only the server knows: a transaction that half the chunks have seen and the others have not touches rows
// of all of them, by keys that lie elsewhere in the order of bytes. Each row comes exactly once.
func TestKeysOfTheServersOrder(t *testing.T) {
	t.Parallel()
	const word = `CASE WHEN g % 2 = 0 THEN upper(l) ELSE l END || lpad(g::text, 2, '0')`
	const words = ` FROM (SELECT g, chr(97 + g * 7 % 26) AS l FROM generate_series(1, 40) g) s`
	const change = `UPDATE t SET v = v + 100 WHERE v % 3 = 0; DELETE FROM t WHERE v % 10 = 1; INSERT INTO t VALUES ('M0', 2000);
		UPDATE t SET id = 'm' || id WHERE v % 10 = 4; UPDATE t SET id = 'B' || id WHERE v % 10 = 7`
	for name, c := range map[string]struct{ table, change string }{
		"text in a locale": {
			`CREATE TABLE t (id text COLLATE "en-x-icu" PRIMARY KEY, v int); INSERT INTO t SELECT ` + word + `, g` + words, change,
		},
		"padded text": {
			`CREATE TABLE t (id char(8) COLLATE "en-x-icu" PRIMARY KEY, v int); INSERT INTO t SELECT ` + word + `, g` + words, change,
		},
		"two columns": {
			`CREATE TABLE t (id varchar(9) COLLATE "en-x-icu", v int, k smallint DEFAULT 7, PRIMARY KEY (id, k));
			INSERT INTO t SELECT ` + word + `, g` + words, change,
		},
		"numbers": {
			`CREATE TABLE t (id numeric PRIMARY KEY, v int); INSERT INTO t SELECT g * 7 % 41 - 20.5, g FROM generate_series(1, 40) g`,
			`UPDATE t SET v = v + 100 WHERE v % 3 = 0; DELETE FROM t WHERE v % 10 = 1; INSERT INTO t VALUES (0.25, 2000);
			UPDATE t SET id = -id * 10 WHERE v % 10 = 4; UPDATE t SET id = id + 100 WHERE v % 10 = 7`,
		},
		"an enum": {
			`CREATE TYPE size AS ENUM ('s9', 's8', 's7', 's6', 's5', 's4', 's3', 's2', 's1', 's0', '9999');
			CREATE TABLE t (id size PRIMARY KEY, v int); INSERT INTO t SELECT ('s' || g)::size, g FROM generate_series(1, 9) g`,
			`UPDATE t SET v = v + 100 WHERE v % 2 = 0; DELETE FROM t WHERE v IN (1, 9); UPDATE t SET id = 's0' WHERE v = 5`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.t")
			j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: gapChunk}
			j.exec(t, c.table)
			s := &scene{job: j, conn: j.session(t)}
			arrived, gate := make(chan struct{}), make(chan struct{})
			chunks := 0
			j.onEmit = func(*rows.Batch) {
				chunks++
				if chunks == 2 {
					arrived <- struct{}{}
					<-gate
				}
			}
			a := j.start(t)
			a.halted(t, arrived) // two chunks are read, or three: one more may be at hand
			execOn(t, s.conn, "BEGIN; "+c.change+"; COMMIT")
			close(gate)
			s.exactly(t, a)
		})
	}
}
