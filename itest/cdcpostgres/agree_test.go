package cdcpostgres

import (
	"strings"
	"testing"

	"weir.dev/weir/pkg/spec"
)

// A row is the same by the copy and by the log: of a table read through its root, whatever order its partitions have their
// columns in; with generated columns before, between and behind the others; and of a table that others inherit from, without
// theirs.
func TestCopyAndLogAgree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ddl, insert, want string }{
		"partitioned": {
			`CREATE TABLE t (id int, v text, w numeric(8,2), PRIMARY KEY (id)) PARTITION BY RANGE (id);
			CREATE TABLE t1 (w numeric(8,2), gone int, id int NOT NULL, v text); ALTER TABLE t1 DROP gone;
			ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (0) TO (100);
			CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (100) TO (300) PARTITION BY RANGE (id);
			CREATE TABLE t21 PARTITION OF t2 FOR VALUES FROM (100) TO (200); CREATE TABLE t22 PARTITION OF t2 DEFAULT`,
			"INSERT INTO t VALUES (%, 'a', 1.5), (1%, 'b', NULL), (2%, NULL, 2)",
			"id=% v=a w=1.50|id=1% v=b w=NULL|id=2% v=NULL w=2.00",
		},
		"generated": {
			`CREATE TABLE t (g1 int GENERATED ALWAYS AS (id * 2) STORED, id int PRIMARY KEY, g2 text GENERATED ALWAYS AS (v || '!') STORED,
			v text, i int GENERATED ALWAYS AS IDENTITY, g3 int GENERATED ALWAYS AS (1) STORED)`,
			"INSERT INTO t (id, v, i) OVERRIDING SYSTEM VALUE VALUES (%, 'a', 7), (1%, NULL, 8), (2%, '', 9)",
			"i=7 id=% v=a|i=8 id=1% v=NULL|i=9 id=2% v=",
		},
		"inherited": {
			"CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE child (own int) INHERITS (t)",
			"INSERT INTO t VALUES (%, 'a'), (1%, 'b'), (2%, 'c'); INSERT INTO child VALUES (%, 'not of t', 1)",
			"id=% v=a|id=1% v=b|id=2% v=c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.t")
			j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: 2}
			j.exec(t, c.ddl)
			j.exec(t, strings.ReplaceAll(c.insert, "%", "10"))
			a := j.start(t)
			wanted := func(op, id string) (rows []string) {
				for row := range strings.SplitSeq(strings.ReplaceAll(c.want, "%", id), "|") {
					rows = append(rows, op+" public.t "+row)
				}
				return rows
			}
			wantRows(t, a.takeUntil(t, wanted("read", "10")...), wanted("read", "10")...)
			j.exec(t, strings.ReplaceAll(c.insert, "%", "11"))
			wantRows(t, a.takeUntil(t, wanted("insert", "11")...), wanted("insert", "11")...)
		})
	}
}
