package schema

import (
	"testing"
)

const (
	differs  = "WEIR-PG-029"
	changed  = "WEIR-PG-025"
	unfit    = "WEIR-SINK-027"
	table    = `CREATE TABLE t (id int PRIMARY KEY, v text, n int); INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)`
	resnap   = "weir job resnapshot schema public.t"
	fromTwo  = "id integer, n integer, v text"
	firstRow = `{"n": 1, "v": "a", "id": 1}`
	otherRow = `{"n": 2, "v": "b", "id": 2}`
)

// What the log cannot show, and what a sink must not do, stops the job; nothing of it is at the target.
func TestStops(t *testing.T) {
	for name, c := range map[string]struct {
		behaviour, sql, code string
		says                 []string
	}{
		"a value for each row":             {"evolve", "ALTER TABLE t ADD u uuid DEFAULT gen_random_uuid(); INSERT INTO t VALUES (3, 'c', 3)", differs, []string{"public.t", `"u"`, resnap}},
		"a serial":                         {"lenient", "ALTER TABLE t ADD s serial; INSERT INTO t VALUES (3, 'c', 3)", differs, []string{`"s"`, resnap}},
		"a type with other values":         {"evolve", "ALTER TABLE t ALTER n TYPE text USING 'n' || n; INSERT INTO t VALUES (3, 'c', 'n3')", differs, []string{`"n"`, "integer", "text", resnap}},
		"made again under its name":        {"evolve", "ALTER TABLE t DROP n; ALTER TABLE t ADD n int; INSERT INTO t VALUES (3, 'c', 3)", differs, []string{resnap}},
		"renamed table":                    {"evolve", "ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (3, 'c', 3)", changed, []string{"public.t", "public.u"}},
		"dropped and made again":           {"evolve", "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (3)", changed, []string{"public.t", "made again"}},
		"exception: added":                 {"exception", "ALTER TABLE t ADD x int; INSERT INTO t VALUES (3, 'c', 3, 3)", unfit, []string{"exception.t", "column x", "schema_change", "by hand"}},
		"exception: dropped":               {"exception", "ALTER TABLE t DROP n; INSERT INTO t VALUES (3, 'c')", unfit, []string{"exception.t", "column n"}},
		"exception: renamed":               {"exception", "ALTER TABLE t RENAME n TO m; INSERT INTO t VALUES (3, 'c', 3)", unfit, []string{"column n was renamed to m"}},
		"exception: altered":               {"exception", "ALTER TABLE t ALTER n TYPE bigint; INSERT INTO t VALUES (3, 'c', 3)", unfit, []string{"n is integer at the target and bigint"}},
		"lenient: a name that is not free": {"lenient", "ALTER TABLE t DROP n, ADD n bigint; INSERT INTO t VALUES (3, 'c', 3)", unfit, []string{"column n", "drop_column"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, table, sink(c.behaviour, c.behaviour, ""))
			s.at(t, source, c.sql)
			s.wantStop(t, c.code, c.says...)
			s.wantRows(t, c.behaviour+".t", fromTwo, firstRow, otherRow)
		})
	}
}

func TestIgnoreDoesNotRound(t *testing.T) {
	s := start(t, "CREATE TABLE t (id int PRIMARY KEY, d numeric(10,2)); INSERT INTO t VALUES (1, 1.10)", sink("ignore", "ignore", ""))
	s.at(t, source, "ALTER TABLE t ALTER d TYPE numeric(12,4); INSERT INTO t VALUES (2, 1.2345)")
	s.wantStop(t, unfit, "numeric(10,2)", "round")
	s.wantRows(t, "ignore.t", "d numeric(10,2), id integer", `{"d": 1.10, "id": 1}`)
}

// A change that somebody makes at the target is what exception waits for.
func TestExceptionGoesOnAfterTheChangeByHand(t *testing.T) {
	s := start(t, table, sink("exception", "exception", ""))
	s.at(t, source, "ALTER TABLE t ADD x int; ALTER TABLE t RENAME n TO m; INSERT INTO t VALUES (3, 'c', 3, 3)")
	s.wantStop(t, unfit, "exception.t")
	s.at(t, target, "ALTER TABLE exception.t ADD x int; ALTER TABLE exception.t RENAME n TO m")
	s.Must(t, "job", "resume", "schema")
	s.Must(t, "status", "schema", "--wait-for", "running", "--timeout", "60s")
	s.CaughtUp(t, "schema")
	s.wantSame(t, "exception", "t")
}

// Tables that are not captured, or that came later, are nobody's business; partitions are their root's.
func TestOtherTablesMayChange(t *testing.T) {
	s := start(t, `CREATE SCHEMA aside; CREATE TABLE aside.t (id int PRIMARY KEY); `+table+`;
		CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
		CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); INSERT INTO p VALUES (1, 'a')`, sink("evolve", "evolve", ""))
	s.at(t, source, `ALTER TABLE aside.t ADD u uuid DEFAULT gen_random_uuid(); INSERT INTO aside.t VALUES (1); DROP TABLE aside.t;
		CREATE TABLE p2 (id int PRIMARY KEY, v text); ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (10) TO (20);
		INSERT INTO p VALUES (2, 'b'), (11, 'c'); ALTER TABLE p ADD n int DEFAULT 4; INSERT INTO p VALUES (12, 'd', 5);
		ALTER TABLE p DETACH PARTITION p2; ALTER TABLE p2 ADD own int; INSERT INTO p2 VALUES (13, 'e', 6, 7); UPDATE p SET v = 'bb' WHERE id = 2`)
	s.CaughtUp(t, "schema")
	s.wantRows(t, "evolve.p", "id integer, n integer, v text", `{"n": 4, "v": "a", "id": 1}`, `{"n": 4, "v": "bb", "id": 2}`,
		`{"n": 4, "v": "c", "id": 11}`, `{"n": 5, "v": "d", "id": 12}`)
	s.wantSame(t, "evolve", "t")
}
