package cdcpostgres

import "testing"

// What hiding columns costs at the server, as docs/promises.md says it: listed columns can be renamed, but neither dropped nor
// given another type.
func TestPriceOfHiddenColumns(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t")
	j.columns(t, []string{"public.t.ssn"}, nil)
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text, w text, ssn text)")
	j.start(t)
	for sql, refused := range map[string]bool{
		"ALTER TABLE t DROP v":                       true,
		"ALTER TABLE t ALTER v TYPE varchar(10)":     true,
		"ALTER TABLE t RENAME w TO w2":               false,
		"ALTER TABLE t ADD x int":                    false,
		"ALTER TABLE t ALTER ssn TYPE varchar(20)":   false,
		"UPDATE t SET v = 'x'; DELETE FROM t":        false,
		"INSERT INTO t (id, ssn) VALUES (1, 'none')": false,
	} {
		if err := j.pg.Exec(t.Context(), j.database, sql); (err != nil) != refused {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
