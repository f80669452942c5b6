package cdcpostgres

import "testing"

// TestTypes reads the same values in binary and in text form: a column without a binary form makes the whole job read
// text. Both give the same cells.
func TestTypes(t *testing.T) {
	t.Parallel()
	values := map[string][2]string{ // column: SQL literal, expected text
		"b": {"true", "true"}, "i2": {"-32768", "-32768"}, "i4": {"2147483647", "2147483647"}, "i8": {"-9223372036854775808", "-9223372036854775808"},
		"n": {"1234567.89", "1234567.89"}, "nn": {"'0.10000000000000000000000000000000000001'", "0.10000000000000000000000000000000000001"},
		"nan": {"'NaN'", "NaN"}, "r": {"1.5", "1.5"}, "d": {"'-0'", "-0"},
		"tx": {"'ä''\\'", `ä'\`}, "vc": {"'x'", "x"}, "ch": {"'x'", "x   "}, "by": {`'\xdeadbeef'`, `\xdeadbeef`},
		"da": {"'2026-02-28'", "2026-02-28"}, "bc": {"'0044-03-15 BC'", "0044-03-15 BC"}, "inf": {"'infinity'", "infinity"},
		"ts": {"'2026-02-28 23:59:59.999999'", "2026-02-28 23:59:59.999999"}, "tz": {"'2026-02-28 23:59:59.5+02'", "2026-02-28 21:59:59.5+00"},
		"far": {"'294276-12-31 23:59:59'", "294276-12-31 23:59:59"}, "ti": {"'12:34:56.000001'", "12:34:56.000001"},
		"u":  {"'00112233-4455-6677-8899-aabbccddeeff'", "00112233-4455-6677-8899-aabbccddeeff"},
		"js": {`'{"a": 1.0}'`, `{"a": 1.0}`}, "jb": {`'{"a":  1.0}'`, `{"a": 1.0}`}, "o": {"4294967295", "4294967295"},
		"dom": {"12", "12"},
	}
	const columns = `id int PRIMARY KEY, b boolean, i2 smallint, i4 int, i8 bigint, n numeric(9,2), nn numeric, nan numeric(5,1), r real,
		d double precision, tx text, vc varchar(3), ch char(4), by bytea, da date, bc date, inf timestamptz, ts timestamp, tz timestamptz,
		far timestamp, ti time, u uuid, js json, jb jsonb, o oid, dom positive`
	for form, extra := range map[string]string{"binary": "", "text": ", iv interval, ia int[], en mood, rg int4range"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.*")
			j.exec(t, "CREATE DOMAIN positive AS int CHECK (value > 0); CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE t ("+columns+extra+")")
			a := j.start(t)
			names, literals := "id", "1"
			for name, v := range values {
				names, literals = names+", "+name, literals+", "+v[0]
			}
			want := map[string]string{"id": "1"}
			for name, v := range values {
				want[name] = v[1]
			}
			if extra != "" {
				names, literals = names+", iv, ia, en, rg", literals+", '1 mon 2 days 03:04:05.5', '{1,NULL,3}', 'ok', '[1,5)'"
				want["iv"], want["ia"], want["en"], want["rg"] = "1 mon 2 days 03:04:05.5", "{1,NULL,3}", "ok", "[1,5)"
			}
			j.exec(t, "INSERT INTO t ("+names+") VALUES ("+literals+"); INSERT INTO t (id) VALUES (2)")
			got := a.take(t, 2)
			for name, text := range want {
				if got[0].cells[name] != text {
					t.Errorf("column %s is %q, want %q", name, got[0].cells[name], text)
				}
			}
			for name, text := range got[1].cells {
				if name != "id" && text != "NULL" {
					t.Errorf("column %s is %q, want null", name, text)
				}
			}
		})
	}
}

// A column without a binary form that is added later makes the reader read the same log again as text, in the middle of
// a transaction, without losing or repeating a row.
func TestTextFromTheMiddle(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1, 'a')")
	a.take(t, 1)
	j.exec(t, "BEGIN; INSERT INTO t VALUES (2, 'b'), (3, 'c'); ALTER TABLE t ADD iv interval; INSERT INTO t VALUES (4, 'd', '1 day'); COMMIT; INSERT INTO t VALUES (5)")
	got := a.take(t, 4)
	wantRows(t, got, "insert public.t id=2 v=b", "insert public.t id=3 v=c", "insert public.t id=4 iv=1 day v=d", "insert public.t id=5 iv=NULL v=NULL")
	for i, c := range got[:3] {
		if c.meta.Ord != uint32(i) {
			t.Errorf("row %d has _ord %d", i, c.meta.Ord)
		}
	}
}
