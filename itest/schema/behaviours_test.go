package schema

import (
	"testing"
)

// change is one table and what happens to it. Rows 1 and 2 are there before the job.
type change struct {
	table, columns string
	before         string
	after          string // DDL and rows
	// What the sinks have then, lenient's where nothing else is said; evolve has what the source has.
	lenient, dropping, ignore []string
}

var changes = []change{
	{
		table: "added", columns: "id int PRIMARY KEY, v text", before: "(1, 'a'), (2, 'b')",
		after: `ALTER TABLE added ADD n int; INSERT INTO added VALUES (3, 'c', 30); UPDATE added SET v = 'bb' WHERE id = 2`,
		lenient: []string{
			"id integer, n integer, v text", `{"n": 30, "v": "c", "id": 3}`, `{"n": null, "v": "a", "id": 1}`, `{"n": null, "v": "bb", "id": 2}`,
		},
		ignore: []string{"id integer, v text", `{"v": "a", "id": 1}`, `{"v": "bb", "id": 2}`, `{"v": "c", "id": 3}`},
	},
	{
		table: "filled", columns: "id int PRIMARY KEY", before: "(1), (2)",
		after: `ALTER TABLE filled ADD n int NOT NULL DEFAULT 7, ADD s text DEFAULT 'it''s \x', ADD a int[] DEFAULT '{1,2}', ADD d date DEFAULT '2024-02-29';
			ALTER TABLE filled ALTER n SET DEFAULT 8; ALTER TABLE filled ALTER s DROP DEFAULT; INSERT INTO filled (id) VALUES (3)`,
		lenient: []string{
			"a integer[], d date, id integer, n integer, s text",
			`{"a": [1, 2], "d": "2024-02-29", "n": 7, "s": "it's \\x", "id": 1}`,
			`{"a": [1, 2], "d": "2024-02-29", "n": 7, "s": "it's \\x", "id": 2}`,
			`{"a": [1, 2], "d": "2024-02-29", "n": 8, "s": null, "id": 3}`,
		},
		ignore: []string{"id integer", `{"id": 1}`, `{"id": 2}`, `{"id": 3}`},
	},
	{
		table: "later", columns: "id int PRIMARY KEY", before: "(1), (2)",
		after: `ALTER TABLE later ADD n int; ALTER TABLE later ALTER n SET DEFAULT 7; INSERT INTO later (id) VALUES (3)`,
		lenient: []string{
			"id integer, n integer", `{"n": 7, "id": 3}`, `{"n": null, "id": 1}`, `{"n": null, "id": 2}`,
		},
		ignore: []string{"id integer", `{"id": 1}`, `{"id": 2}`, `{"id": 3}`},
	},
	{
		table: "dropped", columns: "id int PRIMARY KEY, v text, w text DEFAULT 'w'", before: "(1, 'a', 'x'), (2, 'b', 'y')",
		after: `ALTER TABLE dropped DROP v; INSERT INTO dropped VALUES (3, 'z'); UPDATE dropped SET w = 'yy' WHERE id = 2`,
		lenient: []string{
			"id integer, v text, w text", `{"v": "a", "w": "x", "id": 1}`, `{"v": null, "w": "yy", "id": 2}`, `{"v": null, "w": "z", "id": 3}`,
		},
		dropping: []string{"id integer, w text", `{"w": "x", "id": 1}`, `{"w": "yy", "id": 2}`, `{"w": "z", "id": 3}`},
	},
	{
		table: "renamed", columns: "id int PRIMARY KEY, v text", before: "(1, 'a'), (2, 'b')",
		after: `ALTER TABLE renamed RENAME v TO w; INSERT INTO renamed VALUES (3, 'c'); UPDATE renamed SET w = 'bb' WHERE id = 2`,
		lenient: []string{
			"id integer, v text, w text", `{"v": "a", "w": null, "id": 1}`, `{"v": null, "w": "bb", "id": 2}`, `{"v": null, "w": "c", "id": 3}`,
		},
		ignore: []string{"id integer, v text", `{"v": "a", "id": 1}`, `{"v": "bb", "id": 2}`, `{"v": "c", "id": 3}`},
	},
	{
		table: "widened", columns: "id int PRIMARY KEY, n int, s varchar(3), d numeric(10,2)", before: "(1, 1, 'abc', 1.10), (2, 2, '', 2)",
		after: `ALTER TABLE widened ALTER n TYPE bigint, ALTER s TYPE text, ALTER d TYPE numeric(14,2);
			INSERT INTO widened VALUES (3, 3, 'd', 3); UPDATE widened SET n = 22 WHERE id = 2`,
		lenient: []string{
			"d numeric(14,2), id integer, n bigint, s text", `{"d": 1.10, "n": 1, "s": "abc", "id": 1}`,
			`{"d": 2.00, "n": 22, "s": "", "id": 2}`, `{"d": 3.00, "n": 3, "s": "d", "id": 3}`,
		},
		ignore: []string{
			"d numeric(10,2), id integer, n integer, s character varying(3)", `{"d": 1.10, "n": 1, "s": "abc", "id": 1}`,
			`{"d": 2.00, "n": 22, "s": "", "id": 2}`, `{"d": 3.00, "n": 3, "s": "d", "id": 3}`,
		},
	},
	{
		table: "narrowed", columns: "id int PRIMARY KEY, n bigint, s text", before: "(1, 1, 'abc'), (2, 2, '')",
		after: `ALTER TABLE narrowed ALTER n TYPE int, ALTER s TYPE varchar(3); INSERT INTO narrowed VALUES (3, 3, 'd')`,
		lenient: []string{
			"id integer, n bigint, s text", `{"n": 1, "s": "abc", "id": 1}`, `{"n": 2, "s": "", "id": 2}`, `{"n": 3, "s": "d", "id": 3}`,
		},
	},
	{
		table: "several", columns: "id int PRIMARY KEY, v text", before: "(1, 'a'), (2, 'b')",
		after: `BEGIN; INSERT INTO several VALUES (3, 'c'); ALTER TABLE several ADD n int DEFAULT 5; INSERT INTO several VALUES (4, 'd', 40);
			ALTER TABLE several DROP v; UPDATE several SET n = 20 WHERE id = 2; ALTER TABLE several ADD x varchar(1);
			INSERT INTO several VALUES (5, 50, 'e'); ALTER TABLE several ALTER x TYPE text; INSERT INTO several VALUES (6, 60, 'ff'); COMMIT`,
		lenient: []string{
			"id integer, n integer, v text, x text", `{"n": 20, "v": null, "x": null, "id": 2}`, `{"n": 40, "v": "d", "x": null, "id": 4}`,
			`{"n": 5, "v": "a", "x": null, "id": 1}`, `{"n": 5, "v": "c", "x": null, "id": 3}`, `{"n": 50, "v": null, "x": "e", "id": 5}`,
			`{"n": 60, "v": null, "x": "ff", "id": 6}`,
		},
		dropping: []string{
			"id integer, n integer, x text", `{"n": 20, "x": null, "id": 2}`, `{"n": 40, "x": null, "id": 4}`, `{"n": 5, "x": null, "id": 1}`,
			`{"n": 5, "x": null, "id": 3}`, `{"n": 50, "x": "e", "id": 5}`, `{"n": 60, "x": "ff", "id": 6}`,
		},
		ignore: []string{
			"id integer, v text", `{"v": "a", "id": 1}`, `{"v": "c", "id": 3}`, `{"v": "d", "id": 4}`,
			`{"v": null, "id": 2}`, `{"v": null, "id": 5}`, `{"v": null, "id": 6}`,
		},
	},
}

func TestEveryChangeByEveryBehaviour(t *testing.T) {
	tables := ""
	for _, c := range changes {
		tables += "CREATE TABLE " + c.table + " (" + c.columns + "); INSERT INTO " + c.table + " VALUES " + c.before + ";\n"
	}
	s := start(t, tables, sink("evolve", "evolve", "")+sink("try", "try_evolve", "")+sink("lenient", "lenient", "")+
		sink("dropping", "lenient", ", allow: [drop_column]")+sink("ignore", "ignore", ""))
	for _, c := range changes {
		s.at(t, source, c.after)
	}
	s.CaughtUp(t, "schema")
	for _, c := range changes {
		s.wantSame(t, "evolve", c.table)
		s.wantSame(t, "try", c.table)
		s.wantRows(t, "lenient."+c.table, c.lenient...)
		s.wantRows(t, "dropping."+c.table, orElse(c.dropping, c.lenient)...)
		s.wantRows(t, "ignore."+c.table, orElse(c.ignore, c.lenient)...)
	}
	s.Verify(t, "schema")
}

func orElse(lines, otherwise []string) []string {
	if lines == nil {
		return otherwise
	}
	return lines
}

// Names that are passed on, in a ring and in a chain, and a name that is given to a new column of another type.
func TestEvolveMovesNames(t *testing.T) {
	s := start(t, `CREATE TABLE ring (id int PRIMARY KEY, a text, b text, c int); INSERT INTO ring VALUES (1, 'a', 'b', 3);
		CREATE TABLE chain (id int PRIMARY KEY, a text, b text); INSERT INTO chain VALUES (1, 'a', 'b');
		CREATE TABLE again (id int PRIMARY KEY, v text, w int); INSERT INTO again VALUES (1, 'a', 1);
		CREATE TABLE keyed (id int PRIMARY KEY, v text); INSERT INTO keyed VALUES (1, 'a'), (2, 'b');`, sink("evolve", "evolve", ""))
	s.at(t, source, `BEGIN; ALTER TABLE ring RENAME a TO t; ALTER TABLE ring RENAME b TO a; ALTER TABLE ring RENAME t TO b;
		INSERT INTO ring VALUES (2, 'b', 'a', 4); UPDATE ring SET c = 5 WHERE id = 1; COMMIT;
		BEGIN; ALTER TABLE chain RENAME b TO c; ALTER TABLE chain RENAME a TO b; INSERT INTO chain VALUES (2, 'b', 'c'); COMMIT;
		ALTER TABLE again DROP v, ADD v int DEFAULT 9; INSERT INTO again VALUES (2, 2, 2);
		ALTER TABLE keyed RENAME id TO key; INSERT INTO keyed VALUES (3, 'c'); UPDATE keyed SET v = 'bb' WHERE key = 2; DELETE FROM keyed WHERE key = 1`)
	s.CaughtUp(t, "schema")
	for _, table := range []string{"ring", "chain", "again", "keyed"} {
		s.wantSame(t, "evolve", table)
	}
}

// What the target refuses is left out, and everything else goes on.
func TestTryEvolveLeavesOutWhatTheTargetRefuses(t *testing.T) {
	s := start(t, `CREATE TABLE seen (id int PRIMARY KEY, v text, w int); INSERT INTO seen VALUES (1, 'a', 1)`, sink("try", "try_evolve", ""))
	s.at(t, target, "CREATE VIEW try.view AS SELECT v, w FROM try.seen")
	s.at(t, source, "ALTER TABLE seen DROP v, ALTER w TYPE bigint, ADD x int; INSERT INTO seen VALUES (2, 2, 2)")
	s.CaughtUp(t, "schema")
	s.wantRows(t, "try.seen", "id integer, v text, w integer, x integer", `{"v": "a", "w": 1, "x": null, "id": 1}`, `{"v": null, "w": 2, "x": 2, "id": 2}`)
}

// The process is killed while rows and changes of every kind are under way; what was done is not done again.
func TestChangesAcrossKills(t *testing.T) {
	s := start(t, `CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')`, sink("evolve", "evolve", "")+sink("lenient", "lenient", ""))
	for i, ddl := range []string{
		"ALTER TABLE t ADD n int DEFAULT 7; INSERT INTO t VALUES (2, 'b', 2)",
		"ALTER TABLE t RENAME v TO w; INSERT INTO t VALUES (3, 'c', 3)",
		"INSERT INTO t VALUES (4, 'd', 4); ALTER TABLE t ALTER n TYPE bigint; INSERT INTO t VALUES (5, 'e', 5)",
		"INSERT INTO t VALUES (6, 'f', 6); ALTER TABLE t DROP w; INSERT INTO t VALUES (7, 7); ALTER TABLE t ADD z text DEFAULT 'z'; INSERT INTO t VALUES (8, 8)",
	} {
		if i == 2 {
			s.CaughtUp(t, "schema") // once the table is rewritten nothing says what older rows had in n
		}
		if i%2 == 0 { // it meets the change in its catalog before it meets it in the log
			s.Members[0].Kill()
			s.at(t, source, ddl)
			if err := s.Members[0].Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else {
			s.at(t, source, ddl)
			s.Members[0].Kill()
			if err := s.Members[0].Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Must(t, "status", "schema", "--wait-for", "running", "--timeout", "60s")
	s.CaughtUp(t, "schema")
	s.wantSame(t, "evolve", "t")
	s.wantRows(t, "lenient.t", "id integer, n bigint, v text, w text, z text",
		`{"n": 2, "v": "b", "w": null, "z": "z", "id": 2}`, `{"n": 3, "v": null, "w": "c", "z": "z", "id": 3}`,
		`{"n": 4, "v": null, "w": "d", "z": "z", "id": 4}`, `{"n": 5, "v": null, "w": "e", "z": "z", "id": 5}`,
		`{"n": 6, "v": null, "w": "f", "z": "z", "id": 6}`, `{"n": 7, "v": "a", "w": null, "z": "z", "id": 1}`,
		`{"n": 7, "v": null, "w": null, "z": "z", "id": 7}`, `{"n": 8, "v": null, "w": null, "z": "z", "id": 8}`)
	s.Verify(t, "schema")
}
