package types

import (
	"fmt"
	"slices"
	"strings"
)

// column is a type with its values, as SQL expressions. A value more than others have is a row in which those are null.
type column struct {
	sqlType string
	values  []string
}

// family is a table of the matrix: `id` and a column per type, named c1, c2, ...
type family struct {
	name    string
	columns []column
}

// q quotes literals.
func q(literals ...string) []string {
	for i, l := range literals {
		literals[i] = "'" + strings.ReplaceAll(l, "'", "''") + "'"
	}
	return literals
}

// preamble makes the users' types of the source.
const preamble = `
CREATE SCHEMA m; CREATE SCHEMA one; CREATE SCHEMA two;
CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE EXTENSION cube; CREATE EXTENSION isn;
CREATE TYPE one.mood AS ENUM ('sad', 'ok', 'it''s, "so" {so}');
CREATE TYPE two.mood AS ENUM ('1', 'sad', 'null');
CREATE DOMAIN m.price AS numeric(10,2) CHECK (value >= 0);
CREATE DOMAIN m.offer AS m.price NOT NULL DEFAULT 0;
CREATE DOMAIN m.code AS varchar(8);
CREATE DOMAIN m.ints AS int[];
CREATE DOMAIN m.grid AS int[][];
CREATE TYPE m.address AS (street text, no int, tags text[]);
CREATE TYPE m.person AS (name text, home m.address, born date);
CREATE TYPE m.floatrange AS RANGE (subtype = float8, multirange_type_name = m.floatranges);
CREATE TYPE m."odd Type" AS ENUM ('x');
`

// knownAtTarget are the users' types that the target has too.
const knownAtTarget = `
CREATE SCHEMA one; CREATE TYPE one.mood AS ENUM ('sad', 'ok', 'it''s, "so" {so}');
CREATE EXTENSION hstore;
`

var nines = strings.Repeat("9", 1000)

// matrix is every type. Values are chosen where types break: ends of ranges, what is no number, what needs quotes.
var matrix = []family{
	{"numbers", []column{
		{"smallint", []string{"-32768", "32767", "0"}},
		{"integer", []string{"-2147483648", "2147483647"}},
		{"bigint", []string{"-9223372036854775808", "9223372036854775807"}},
		{"oid", []string{"0", "4294967295"}},
		{"real", q("1e-45", "3.4028235e38", "NaN", "-Infinity", "-0", "0.1")},
		{"double precision", q("5e-324", "1.7976931348623157e308", "NaN", "Infinity", "-0", "0.1")},
		{"numeric", q(nines+"."+nines, "-0.00000000000000000000000000000000000001", "NaN", "Infinity", "-Infinity", "0", "1.10")},
		{"numeric(10,2)", q("99999999.99", "-99999999.99", "NaN", "0.00", "0.01")},
		{"numeric(38,38)", q("0."+strings.Repeat("9", 38), "-0."+strings.Repeat("1", 38))},
		{"numeric(76,30)", q(strings.Repeat("9", 46)+"."+strings.Repeat("9", 30), "NaN")},
		{"numeric(1000,500)", q(strings.Repeat("9", 500) + "." + strings.Repeat("9", 500))},
		{"money", q("-$92,233,720,368,547,758.08", "$92,233,720,368,547,758.07", "0")},
		{"boolean", []string{"true", "false"}},
		{"pg_lsn", q("FFFFFFFF/FFFFFFFF", "0/0")},
		{"xid", q("4294967295")},
		{"xid8", q("18446744073709551615")},
		{"cid", q("1")},
		{"tid", q("(4294967295,65535)")},
	}},
	{"texts", []column{
		{"text", append(q("", "NULL", `\N`, "tab\tnl\nquote' \"", "ä€𝄞", `\x00`), "repeat('long ', 2000)")},
		{"varchar(5)", q("", "abcde", "ä€𝄞")},
		{"varchar", q("any")},
		{"char(5)", q("", "ab", "abcde", " x")},
		{"char", q("x")},
		{"bpchar", q("ab  ", "")},
		{`"char"`, q("x", "")},
		{"name", q(strings.Repeat("n", 63))},
		{"bytea", append(q(`\x`, `\x00ff5c27`), "decode(repeat('00ff5c', 7000), 'hex')")},
		{"xml", q(`<a b="c">d &amp; ü</a>`, "plain <b/> text", `<?xml version="1.0" standalone="yes"?><x/>`)},
		{"json", q(`{"a":  1.10, "a": 2, "n": 123456789012345678901234567890}`, "null", `"\u00e4"`, "[1,\n2]")},
		{"jsonb", q(`{"b": 1.10, "a": [null, true, "x\"y"], "n": 123456789012345678901234567890, "e": 1E-20}`, "null", `"text"`, "{}")},
		{"jsonpath", q(`$.a[*] ? (@ > 1)`)},
		{"uuid", q("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")},
		{"bit(8)", q("10101010", "00000000")},
		{"bit", q("1")},
		{"varbit(10)", q("", "101")},
		{"varbit", q("1010101010101010")},
		{"tsvector", q(`'it''s':1A,2 'quo"te':3 'a b'`, "")},
		{"tsquery", q(`'it''s' & !'b c':*A`)},
		{"refcursor", q("cursor")},
		{"int2vector", q("1 -2 3")},
		{"oidvector", q("1 2")},
		{"txid_snapshot", q("10:20:10,14,15")},
		{"pg_snapshot", q("10:20:10,14,15")},
	}},
	{"times", []column{
		{"date", q("2024-02-29", "4713-01-01 BC", "0001-12-31 BC", "0001-01-01", "5874897-12-31", "infinity", "-infinity")},
		{"time", q("00:00:00", "23:59:59.999999", "24:00:00", "12:00:00.5")},
		{"time(3)", q("12:34:56.789")},
		{"timetz", q("00:00:00+15:59", "23:59:59.999999-15:59", "24:00:00+00", "12:34:56.7+05:30:15")},
		{"timestamp", q("4713-01-01 00:00:00 BC", "294276-12-31 23:59:59.999999", "294247-01-10 04:00:54.775807", "infinity", "-infinity", "1969-12-31 23:59:59.999999", "0001-01-01")},
		{"timestamp(0)", q("2024-02-29 12:00:00")},
		{"timestamptz", q("4713-01-01 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00", "infinity", "-infinity", "2024-03-31 02:30:00+01", "1900-01-01 00:00:00+00", "0044-03-15 12:00:00.5+00 BC")},
		{"timestamptz(3)", q("2024-02-29 12:00:00.123+02")},
		{"interval", q("178000000 years", "-178000000 years", "1 year 2 mons -3 days +04:05:06.789", "00:00:00", "-1 mons +2 days -00:00:00.000001")},
		{"interval day to second(2)", q("3 days 04:05:06.78")},
	}},
	{"ranges", []column{
		{"int4range", q("empty", "(,)", "[1,5)", "[,5)", "[-2147483648,)")},
		{"int8range", q("[1,9223372036854775807)")},
		{"numrange", q("(1.10,2.200]", "[NaN,NaN]", "empty")},
		{"tsrange", q(`["2024-01-01 00:00:00","2024-01-02 00:00:00")`, "[-infinity,infinity]")},
		{"tstzrange", q(`["2024-01-01 00:00:00+00",)`, `("0044-03-15 00:00:00+00 BC",infinity)`)},
		{"daterange", q("[2024-02-29,)", "[-infinity,5874897-12-31)")},
		{"int4multirange", q("{}", "{[1,2),[5,)}")},
		{"int8multirange", q("{(,)}")},
		{"nummultirange", q("{[1.1,2.2)}")},
		{"tsmultirange", q(`{["2024-01-01 00:00:00","2024-01-02 00:00:00")}`)},
		{"tstzmultirange", q("{}")},
		{"datemultirange", q("{[2024-01-01,2024-01-05)}")},
		{"m.floatrange", q("[1.5,2.5)", "[-0,NaN]")},
		{"m.floatranges", q("{[1,2),[3,4)}")},
	}},
	{"places", []column{
		{"point", q("(1.5,-2.5)", "(1e+300,0)", "(NaN,Infinity)")},
		{"lseg", q("[(0,0),(1,1)]")},
		{"box", q("(1,1),(0,0)")},
		{"path", q("((0,0),(1,1))", "[(0,0),(1,1)]")},
		{"polygon", q("((0,0),(1,1),(1,0))")},
		{"line", q("{1,-1,0}")},
		{"circle", q("<(0,0),1.5>")},
		{"inet", q("192.168.0.1/24", "10.0.0.1", "::1", "2001:db8::/32")},
		{"cidr", q("10.0.0.0/8", "2001:db8::/32")},
		{"macaddr", q("08:00:2b:01:02:03")},
		{"macaddr8", q("08:00:2b:01:02:03:04:05")},
		{"regclass", q("pg_class", "m.numbers")},
		{"regtype", q("one.mood", "integer")},
		{"regproc", q("now")},
		{"regrole", q("postgres")},
		{"regnamespace", q("m")},
		{"regprocedure", q("abs(integer)")},
		{"regconfig", q("english")},
		{"aclitem", q("postgres=arwdDxt/postgres")},
	}},
	{"arrays", []column{
		{"int[]", q("{}", "{1,NULL,-3}", "{NULL}", "{{1,2},{3,NULL}}", "[0:2]={7,8,9}", "[-1:0][2:3]={{1,2},{3,4}}")},
		{"int[][]", q("{{1,2},{3,4}}", "{}", "{5}")},
		{"text[]", q(`{a,"NULL",null,NULL,"","a,b","{x}","q\"q","b\\s","sp ace"," ä "}`, "{}", `{{a,""},{b,"}"}}`)},
		{"bool[]", q("{t,f,NULL}", "{{t},{f}}")},
		{"smallint[]", q("{-32768}")},
		{"bigint[]", q("{9223372036854775807,NULL}")},
		{"oid[]", q("{4294967295}")},
		{"real[]", q("{0.1,NaN}")},
		{"float8[]", q("{0.1,NaN,-0,Infinity}")},
		{"numeric[]", q("{1.10,"+nines+"}", "{1,NaN}", "{Infinity}")},
		{"numeric(10,2)[]", q("{1.10,NULL}", "{NaN,1.00}")},
		{"date[]", q("{2024-02-29}", "{infinity}", `{"0044-03-15 BC"}`)},
		{"time[]", q("{12:00:00.5}", "{24:00:00}")},
		{"timestamp[]", q(`{"2024-01-01 00:00:00"}`, "{infinity,NULL}")},
		{"timestamptz(3)[]", q(`{"2024-01-01 00:00:00.5+00"}`, `{"294276-01-01 00:00:00+00"}`)},
		{"timetz[]", q("{12:00:00+01}")},
		{"interval[]", q(`{"1 day","-00:00:01"}`)},
		{"bytea[]", q(`{"\\x00ff",NULL,"\\x"}`)},
		{"uuid[]", q("{00000000-0000-0000-0000-000000000000}")},
		{"json[]", q(`{"{\"a\":  [1]}","null",NULL}`)},
		{"jsonb[]", q(`{"{\"a\": [1, \"x\"]}","1.10"}`)},
		{"varchar(3)[]", q("{abc,NULL}")},
		{"char(3)[]", q("{a,abc}")},
		{"bit(3)[]", q("{101,000}")},
		{"varbit[]", q(`{"",101}`)},
		{"name[]", q("{a,b}")},
		{`"char"[]`, q(`{x,""}`)},
		{"money[]", q(`{"$1,234.56","-$0.01"}`)},
		{"xml[]", q(`{"<a b=\"c\"/>"}`)},
		{"box[]", q("{(1,1),(0,0);(2,2),(1,1)}")},
		{"point[]", q(`{"(1,2)","(3,4)"}`)},
		{"inet[]", q("{10.0.0.1,::1}")},
		{"int4range[]", q(`{"[1,5)",empty}`)},
		{"int4multirange[]", q(`{"{[1,5),[7,9)}",NULL}`)},
		{"tsvector[]", q(`{"'a':1 'b c'"}`)},
		{"regclass[]", q("{pg_class}")},
		{"pg_lsn[]", q("{0/1}")},
	}},
	{"users", []column{
		{"one.mood", q("sad", `it's, "so" {so}`)},
		{"two.mood", q("1", "null")},
		{`m."odd Type"`, q("x")},
		{"one.mood[]", q(`{sad,NULL,"it's, \"so\" {so}"}`, "{}")},
		{"two.mood[]", q(`{1,"null",NULL}`, "{{1},{sad}}")},
		{"m.price", q("0.00", "99999999.99", "NaN")},
		{"m.code", q("", "abcdefgh")},
		{"m.price[]", q("{1.10,NULL}")},
		{"m.ints", q("{1,2}", "{{1},{2}}")},
		{"m.grid", q("{{1,2},{3,4}}")},
		{"m.ints[]", []string{"ARRAY['{1,2}', '{3}', NULL]::m.ints[]"}},
		{"m.address", q(`("a ""b"" (c), d\\e",,"{x,""y z"",NULL}")`, "(,,)")},
		{"m.person", []string{`ROW('O''Neil, "Jim"', ROW('x y', 1, ARRAY['a,b', NULL])::m.address, '0044-03-15 BC')`, "NULL"}},
		{"m.address[]", []string{`ARRAY[ROW('a "b"', 1, NULL)::m.address, NULL]`}},
		{"citext", q("MiXed", "")},
		{"citext[]", q(`{A,"b c"}`)},
		{"hstore", q(`"a"=>"1", "b c"=>NULL`, "")},
		{"hstore[]", []string{`ARRAY['a=>"x, y"'::hstore]`}},
		{"ltree", q("a.b.c")},
		{"cube", q("(1, 2),(3, 4)")},
		{"isbn13", q("978-0-393-04002-9")},
	}},
}

// binaryTypes are the types whose binary form is read, without parameters; so are the arrays of all of them.
var binaryTypes = []string{
	"smallint", "integer", "int", "bigint", "oid", "real", "double precision", "float8", "numeric", "boolean", "bool",
	"text", "varchar", "char", "bpchar", "name", "bytea", "xml", "json", "jsonb", "uuid", "refcursor", "date", "time",
	"timestamp", "timestamptz", "one.mood", "two.mood", `m."odd Type"`, "m.price", "m.code", "m.ints", "citext",
}

func hasBinary(sqlType string) bool {
	name := strings.TrimSuffix(sqlType, "[]")
	if at := strings.IndexByte(name, '('); at > 0 {
		name = name[:at]
	}
	return slices.Contains(binaryTypes, name) && sqlType != "m.ints[]"
}

// families are those of the path.
func (p path) families() []family {
	var chosen []family
	for _, f := range matrix {
		if p.binary {
			f.columns = slices.DeleteFunc(slices.Clone(f.columns), func(c column) bool { return !hasBinary(c.sqlType) })
		}
		if len(f.columns) > 0 {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// table is the name of the family's table.
func (f family) table() string { return "m." + f.name }

func (f family) createSQL() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (id int PRIMARY KEY", f.table())
	for i, c := range f.columns {
		fmt.Fprintf(&b, ", c%d %s", i+1, c.sqlType)
	}
	return b.String() + ");\n"
}

// insertSQL has one row per place in the lists of values.
func (f family) insertSQL() string {
	var b strings.Builder
	for row := 0; ; row++ {
		names, values := "id", fmt.Sprint(row+1)
		for i, c := range f.columns {
			if row < len(c.values) {
				names += fmt.Sprintf(", c%d", i+1)
				values += ", " + c.values[row]
			}
		}
		fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES (%s);\n", f.table(), names, values)
		if names == "id" {
			return b.String() // the row of nulls
		}
	}
}
