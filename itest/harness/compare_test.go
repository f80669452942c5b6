package harness_test

import (
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/audit"
)

func TestCompareTables(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	if err := pg.Exec(ctx, "postgres", `
		CREATE SCHEMA a; CREATE SCHEMA b;
		CREATE TABLE a.t (v text, k2 text, k1 int, n numeric, PRIMARY KEY (k1, k2));
		INSERT INTO a.t VALUES ('secret', 'x', 1, 1.50), (NULL, 'y', 1, 2), ('', 'x', 10, 3), ('z', 'é', 2, NULL);
		CREATE TABLE b.t (k1 int, k2 text, n numeric, v text, PRIMARY KEY (k1, k2), own int DEFAULT 7);
		CREATE TABLE a.keyless (v text, n int);
		INSERT INTO a.keyless VALUES (NULL, 1), ('x', 2), ('x', 2);
		CREATE TABLE b.keyless AS SELECT * FROM a.keyless`); err != nil {
		t.Fatal(err)
	}
	compare := func(t *testing.T, table string, values bool) audit.Comparison {
		t.Helper()
		got, err := audit.CompareTables(ctx, audit.CompareConfig{
			SourceURL: pg.URL("postgres"), TargetURL: pg.URL("postgres"),
			Tables: []audit.TablePair{{Source: "a." + table, Target: "b." + table}},
			Values: values,
		})
		if err != nil {
			t.Fatal(err)
		}
		return got[0]
	}

	const equal = `DELETE FROM b.t; INSERT INTO b.t (k1, k2, v, n) SELECT k1, k2, v, n FROM a.t;`
	for _, tc := range []struct {
		name, change              string
		missing, extra, different int64
		example                   string // a part of it, values shown
	}{
		{name: "equal", change: ""},
		{name: "missing", change: "DELETE FROM b.t WHERE k1 = 10", missing: 1, example: `missing: row k1="10",k2="x"`},
		{name: "all missing", change: "DELETE FROM b.t", missing: 4},
		{name: "extra", change: "INSERT INTO b.t VALUES (0, 'q')", extra: 1, example: `extra: row k1="0",k2="q"`},
		{name: "another value", change: "UPDATE b.t SET v = 'other' WHERE v = 'secret'", different: 1, example: `in v "secret" became "other"`},
		{name: "null is not empty", change: "UPDATE b.t SET v = '' WHERE v IS NULL", different: 1, example: `in v NULL became ""`},
		{name: "scale counts", change: "UPDATE b.t SET n = 1.5 WHERE n = 1.50", different: 1, example: `in n "1.50" became "1.5"`},
		{name: "another key", change: "UPDATE b.t SET k2 = 'w' WHERE k2 = 'y'", missing: 1, extra: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := pg.Exec(ctx, "postgres", equal+tc.change); err != nil {
				t.Fatal(err)
			}
			got := compare(t, "t", true)
			if got.Missing != tc.missing || got.Extra != tc.extra || got.Different != tc.different {
				t.Errorf("got %s", got)
			}
			if got.Equal() != (tc.missing+tc.extra+tc.different == 0) || got.SourceRows != 4 {
				t.Errorf("Equal = %t of %s", got.Equal(), got)
			}
			if !strings.Contains(got.String(), tc.example) {
				t.Errorf("%s\ndoes not contain %s", got, tc.example)
			}
			if quiet := compare(t, "t", false).String(); strings.Contains(quiet, "secret") || strings.Contains(quiet, `"`) {
				t.Errorf("a value is shown: %s", quiet)
			}
		})
	}

	t.Run("keyless", func(t *testing.T) {
		if got := compare(t, "keyless", true); !got.Equal() || got.SourceRows != 3 {
			t.Errorf("got %s", got)
		}
		if err := pg.Exec(ctx, "postgres", "INSERT INTO b.keyless VALUES ('x', 2)"); err != nil {
			t.Fatal(err)
		}
		if got := compare(t, "keyless", true); got.Extra != 1 || got.Missing != 0 {
			t.Errorf("a duplicate at the target: got %s", got)
		}
	})

	t.Run("missing column", func(t *testing.T) {
		if err := pg.Exec(ctx, "postgres", "ALTER TABLE b.t DROP COLUMN v"); err != nil {
			t.Fatal(err)
		}
		_, err := audit.CompareTables(ctx, audit.CompareConfig{
			SourceURL: pg.URL("postgres"), TargetURL: pg.URL("postgres"),
			Tables: []audit.TablePair{{Source: "a.t", Target: "b.t"}},
		})
		wantSQLState(t, err, "42703") // undefined_column
	})
}
