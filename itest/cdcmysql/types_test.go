package cdcmysql

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/spec"
)

// column is a type with its values, as SQL expressions, and the texts that they have here.
type column struct {
	sqlType string
	values  []string
	want    []string
}

// columns are every type of MySQL 9, with values where types break: ends of ranges without signs (O36), other character sets (O37),
// times before midnight (O38), dates that no calendar has (O39), instants (O40), labels (O41), padding.
var columns = []column{
	{"tinyint", []string{"-128", "127"}, []string{"-128", "127"}},
	{"tinyint unsigned", []string{"0", "255"}, []string{"0", "255"}},
	{"smallint", []string{"-32768", "32767"}, []string{"-32768", "32767"}},
	{"smallint unsigned", []string{"65535"}, []string{"65535"}},
	{"mediumint", []string{"-8388608", "8388607"}, []string{"-8388608", "8388607"}},
	{"mediumint unsigned", []string{"16777215"}, []string{"16777215"}},
	{"int", []string{"-2147483648", "2147483647"}, []string{"-2147483648", "2147483647"}},
	{"int unsigned", []string{"4294967295"}, []string{"4294967295"}},
	{"bigint", []string{"-9223372036854775808", "9223372036854775807"}, []string{"-9223372036854775808", "9223372036854775807"}},
	{"bigint unsigned", []string{"18446744073709551615"}, []string{"18446744073709551615"}},
	{"int(5) zerofill", []string{"42"}, []string{"42"}},
	{"bool", []string{"true", "false"}, []string{"1", "0"}},
	{
		"decimal(65,30)",
		[]string{strings.Repeat("9", 35) + "." + strings.Repeat("9", 30), "-0." + strings.Repeat("0", 29) + "1", "-12.5"},
		[]string{strings.Repeat("9", 35) + "." + strings.Repeat("9", 30), "-0." + strings.Repeat("0", 29) + "1", "-12.5" + strings.Repeat("0", 29)},
	},
	{"decimal(10,2)", []string{"99999999.99", "-0.01", "0"}, []string{"99999999.99", "-0.01", "0.00"}},
	{"decimal(20,0)", []string{"-99999999999999999999", "1000000000"}, []string{"-99999999999999999999", "1000000000"}},
	{"decimal(9,9)", []string{"0.123456789", "-0.000000001"}, []string{"0.123456789", "-0.000000001"}},
	{"float", []string{"1.1754944e-38", "3.4028234e38", "16777217", "0.1"}, []string{"1.1754944e-38", "3.4028235e+38", "1.6777216e+07", "0.1"}},
	{"double", []string{"2.2250738585072014e-308", "1.7976931348623157e308", "0.1"}, []string{"2.2250738585072014e-308", "1.7976931348623157e+308", "0.1"}},
	{"float(7,3)", []string{"1234.567"}, []string{"1234.567"}},
	{"bit(1)", []string{"b'1'"}, []string{`\x01`}},
	{"bit(12)", []string{"b'101000000001'"}, []string{`\x0a01`}},
	{"bit(64)", []string{"b'" + strings.Repeat("1", 64) + "'"}, []string{`\xffffffffffffffff`}},
	{"year", []string{"0", "1901", "2155"}, []string{"0", "1901", "2155"}},
	{"date", []string{"'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-10'", "'1969-12-31'"}, []string{"1000-01-01", "9999-12-31", "[0000-00-00]", "[2024-00-10]", "1969-12-31"}},
	{"datetime", []string{"'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'"}, []string{"1000-01-01 00:00:00", "9999-12-31 23:59:59", "[0000-00-00 00:00:00]"}},
	{"datetime(6)", []string{"'1969-12-31 23:59:59.999999'", "'2024-00-00 01:02:03.000004'"}, []string{"1969-12-31 23:59:59.999999", "[2024-00-00 01:02:03.000004]"}},
	{"datetime(3)", []string{"'2024-02-29 12:34:56.789'"}, []string{"2024-02-29 12:34:56.789"}},
	{"timestamp null", []string{"'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"}, []string{"1970-01-01 00:00:01+00", "2038-01-19 03:14:07+00", "[0000-00-00 00:00:00]"}},
	{"timestamp(4) null", []string{"'2024-06-01 12:00:00.1234'"}, []string{"2024-06-01 12:00:00.1234+00"}},
	{"time", []string{"'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"}, []string{"-838:59:59", "838:59:59", "00:00:00", "-00:00:01"}},
	{"time(6)", []string{"'-838:59:58.999999'", "'-00:00:00.000001'", "'23:59:59.5'"}, []string{"-838:59:58.999999", "-00:00:00.000001", "23:59:59.5"}},
	{"time(1)", []string{"'-01:02:03.4'", "'01:02:03.4'"}, []string{"-01:02:03.4", "01:02:03.4"}},
	{"time(4)", []string{"'-01:02:03.4567'", "'-00:00:00.0001'"}, []string{"-01:02:03.4567", "-00:00:00.0001"}},
	{"char(5)", []string{"''", "'ab'", "'ä€𝄞'", "'  x'"}, []string{"", "ab", "ä€𝄞", "  x"}},
	{"varchar(300)", []string{"''", "'it''s'", "REPEAT('ä', 300)", "'trail  '"}, []string{"", "it's", strings.Repeat("ä", 300), "trail  "}},
	{"varchar(20) character set latin1", []string{"'h\u00e9llo \u20ac'"}, []string{"h\u00e9llo \u20ac"}},
	{"char(10) character set gbk", []string{"'中文'"}, []string{"中文"}},
	{"varchar(20) character set utf16", []string{"'a€𝄞'"}, []string{"a€𝄞"}},
	{"varchar(20) character set ucs2", []string{"'a€'"}, []string{"a€"}},
	{"text character set utf32", []string{"'a€𝄞'"}, []string{"a€𝄞"}},
	{"varchar(20) character set sjis", []string{"'日本'"}, []string{"日本"}},
	{"tinytext", []string{"'tiny'"}, []string{"tiny"}},
	{"mediumtext", []string{"REPEAT('m', 70000)"}, []string{strings.Repeat("m", 70000)}},
	{"longtext", []string{"'long'"}, []string{"long"}},
	{"binary(4)", []string{"x'0100'", "x'00000000'", "x'ff'"}, []string{`\x01000000`, `\x00000000`, `\xff000000`}},
	{"varbinary(10)", []string{"x'0100'", "''"}, []string{`\x0100`, `\x`}},
	{"blob", []string{"x'00ff27'"}, []string{`\x00ff27`}},
	{"longblob", []string{"x'01'"}, []string{`\x01`}},
	{"enum('a','it''s','é') character set latin1", []string{"'a'", "'it''s'", "'é'"}, []string{"a", "it's", "é"}},
	{"set('x','y','é') character set latin1", []string{"''", "'x,é'", "'y'"}, []string{"", "x,é", "y"}},
	{"json", []string{
		`'{"b": 1, "aa": [true, null, -5, 18446744073709551615], "a": {"x": "q\"\\ \u0001\u00e9"}}'`,
		"JSON_OBJECT('d', CAST('-12.50' AS DECIMAL(10,2)), 'f', 1.0e0, 't', CAST('2020-01-02 03:04:05.678' AS DATETIME(6)))",
		"JSON_ARRAY(CAST('2020-01-02' AS DATE), CAST('-01:02:03' AS TIME), 1e100, 1e-7, 123456789012345680, 0.1e0, -0.5e-3)",
		`'"text"'`, "'[]'", "'null'",
	}, nil},
	{"geometry", []string{"ST_GeomFromText('POINT(1 2)', 4326)"}, []string{`\xe610000001010000000000000000000040000000000000f03f`}},
	{"point", []string{"ST_GeomFromText('POINT(1 2)')"}, []string{`\x000000000101000000000000000000f03f0000000000000040`}},
	{"vector(3)", []string{"TO_VECTOR('[1, -2.5, 0.1]')"}, []string{"{1,-2.5,0.1}"}},
	{"int invisible", []string{"7"}, []string{"7"}},
}

// Every value is the same by snapshot and by log, of a session in another time zone, in a server in another.
func TestTypesAgree(t *testing.T) {
	t.Parallel()
	types := columns
	var create strings.Builder
	for i, c := range types {
		fmt.Fprintf(&create, ", c%d %s", i, c.sqlType)
	}
	deep := 0
	for _, c := range types {
		deep = max(deep, len(c.values))
	}
	var inserts []string
	for row := range deep + 1 {
		names, values := []string{"id"}, []string{fmt.Sprint(row)}
		for i, c := range types {
			if row < len(c.values) {
				names, values = append(names, fmt.Sprintf("c%d", i)), append(values, c.values[row])
			}
		}
		inserts = append(inserts, fmt.Sprintf("INSERT INTO %%s.t (%s) VALUES (%s)", strings.Join(names, ", "), strings.Join(values, ", ")))
	}
	paths := make(map[string][]change)
	for _, mode := range []spec.SnapshotMode{spec.SnapshotInitial, spec.SnapshotNever} {
		db := "types_" + string(mode)
		run(t, mysql, "CREATE DATABASE "+db, "CREATE TABLE "+db+".t (id int PRIMARY KEY"+create.String()+
			", g int GENERATED ALWAYS AS (id * 2) STORED, v int GENERATED ALWAYS AS (id + 1) VIRTUAL) CHARACTER SET utf8mb4")
		statements := []string{"SET sql_mode = 'ALLOW_INVALID_DATES,NO_BACKSLASH_ESCAPES', time_zone = '+00:00'"}
		for _, sql := range inserts {
			statements = append(statements, fmt.Sprintf(sql, db))
		}
		if mode == spec.SnapshotInitial {
			run(t, mysql, statements...)
		}
		a := start(t, mysql, mode, db+".t")
		if mode == spec.SnapshotNever {
			run(t, mysql, statements...)
		}
		got := a.take(t, len(inserts))
		slices.SortFunc(got, func(x, y change) int {
			return strings.Compare(fmt.Sprintf("%3s", x.cells["id"]), fmt.Sprintf("%3s", y.cells["id"]))
		})
		paths[string(mode)] = got
	}
	for row := range inserts {
		copied, logged := paths["initial"][row].cells, paths["never"][row].cells
		for i, c := range types {
			name := fmt.Sprintf("c%d", i)
			if copied[name] != logged[name] {
				t.Errorf("%s, value %d: copied %.300q, logged %.300q", c.sqlType, row, copied[name], logged[name])
			}
			want := "NULL"
			if row < len(c.values) {
				if c.want == nil {
					continue
				}
				want = c.want[row]
			}
			if logged[name] != want {
				t.Errorf("%s, value %d: logged %.300q, want %.300q", c.sqlType, row, logged[name], want)
			}
		}
		if copied["g"] != logged["g"] || copied["v"] != logged["v"] || copied["g"] != fmt.Sprint(2*row) {
			t.Errorf("generated columns of row %d: copied %s and %s, logged %s and %s", row, copied["g"], copied["v"], logged["g"], logged["v"])
		}
	}
}
