package mytypes

import (
	"fmt"
	"slices"
	"strings"
)

// column is a type with its values, as SQL expressions. A value more than others have is a row in which those are null.
// One without values is computed by the server.
type column struct {
	sqlType string
	values  []string
}

// family is a table of the matrix: `id`, a number that changes, and a column per type, named c1, c2, ...
type family struct {
	name    string
	columns []column
	more    string // of the table's definition
	plain   bool   // values are compared, and not in a golden
}

// q quotes literals.
func q(literals ...string) []string {
	out := make([]string, len(literals))
	for i, l := range literals {
		out[i] = "_utf8mb4'" + strings.ReplaceAll(l, "'", "''") + "'"
	}
	return out
}

// labels are the members of an ENUM or SET of n.
func labels(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("'m%d'", i+1))
	}
	return strings.Join(all, ",")
}

const (
	oddLabels = `('it''s', 'a b', '"q"', 'back\slash', 'naïve', 'café', '日本')`
	latin     = "CHARACTER SET latin1"
)

var nines = strings.Repeat("9", 30)

// common are the types of both servers. Values are chosen where types break: ends of ranges, both signs, what no calendar
// has, what is filled up or cut off. Neighbours matter too: the log describes signs and character sets of some columns only.
var common = []family{
	{name: "integers", columns: []column{
		{"year", []string{"0", "1901", "2155"}},
		{"tinyint unsigned", []string{"0", "255", "128"}},
		{"bit(64)", []string{"18446744073709551615", "0", "1", "9223372036854775808"}},
		{"tinyint", []string{"-128", "127", "-1"}},
		{"smallint unsigned", []string{"0", "65535", "32768"}},
		{"smallint", []string{"-32768", "32767", "-1"}},
		{"mediumint unsigned", []string{"0", "16777215", "8388608"}},
		{"mediumint", []string{"-8388608", "8388607", "-1"}},
		{"int unsigned", []string{"0", "4294967295", "2147483648"}},
		{"int", []string{"-2147483648", "2147483647", "-1"}},
		{"bigint unsigned", []string{"0", "18446744073709551615", "9223372036854775808"}},
		{"bigint", []string{"-9223372036854775808", "9223372036854775807", "-1"}},
		{"int(8) unsigned zerofill", []string{"42", "4294967295"}},
		{"tinyint(1)", []string{"0", "1", "-128"}},
		{"bit(1)", []string{"b'0'", "b'1'"}},
		{"bit(10)", []string{"b'1000000001'", "b'0'"}},
	}},
	{name: "fractions", columns: []column{
		{"decimal(65,30)", []string{strings.Repeat("9", 35) + "." + nines, "-" + strings.Repeat("9", 35) + "." + nines, "-0." + strings.Repeat("0", 29) + "1", "0"}},
		{"decimal(65,0)", []string{strings.Repeat("9", 65), "-1" + strings.Repeat("0", 64), "0"}},
		{"decimal(30,30)", []string{"0." + nines, "-0." + nines}},
		{"decimal(38,10)", []string{strings.Repeat("9", 28) + ".9999999999", "-0.0000000001"}},
		{"decimal(39,1)", []string{"-" + strings.Repeat("9", 38) + ".9"}},
		{"decimal(10,2) unsigned zerofill", []string{"1.5", "99999999.99"}},
		{"decimal(1,0)", []string{"-9", "9", "0"}},
		{"float", []string{"3.4028234e38", "-1.17549435e-38", "0.1", "16777215", "1e-7"}},
		{"float(7,4)", []string{"999.9999", "-0.0001"}},
		{"float unsigned", []string{"0.3"}},
		{"double", []string{"1.7976931348623157e308", "-2.2250738585072014e-308", "0.1", "1e15", "123456789012345680", "1e-15"}},
		{"double(10,3)", []string{"1234567.891", "-0.001"}},
		{"double unsigned zerofill", []string{"0.3", "1e20"}},
	}},
	{name: "texts", columns: []column{
		{"char(5)", q("", "ab", "abcde", " x", "ä€𝄞日x")},
		{"varchar(5)", q("", "a ", "ä€𝄞日x", "tab\tn", `\'"%_`)},
		{"varchar(300)", append(q("", "\n\r"), "REPEAT('𝄞', 300)")},
		{"char(255)", append(q("x"), "REPEAT('𝄞', 255)")},
		{"tinytext", append(q("", "a "), "REPEAT('x', 255)")},
		{"text", append(q("", "NULL"), "REPEAT('ä', 3000)")},
		{"mediumtext", []string{"REPEAT('medium ', 10000)"}},
		{"longtext", []string{"REPEAT('long', 10000)"}},
		{"char(5) " + latin, q("€é", "", "ÿ ÿ")},
		{"varchar(10) " + latin, []string{"_utf8mb4'€éŽ'", "_latin1 x'818d8f909d80ff41'"}},
		{"text " + latin, q("€é", "")},
		{"varchar(10) CHARACTER SET gbk", q("中文", "a中b", "")},
		{"char(4) CHARACTER SET ucs2", q("中é", "a", "")},
		{"varchar(10) CHARACTER SET utf16", q("𝄞中a", "")},
		{"text CHARACTER SET utf16le", q("𝄞中a", "")},
		{"varchar(10) CHARACTER SET utf32", q("𝄞中a", "")},
		{"varchar(10) CHARACTER SET utf8mb3", q("中é", "")},
		{"varchar(10) CHARACTER SET ascii", q("plain", "")},
		{"varchar(10) CHARACTER SET sjis", q("日本", "ｱ")},
		{"varchar(10) CHARACTER SET cp932", q("日本①", "")},
		{"varchar(10) CHARACTER SET ujis", q("日本", "ｱ")},
		{"varchar(10) CHARACTER SET eucjpms", q("日本①", "")},
		{"varchar(10) CHARACTER SET big5", q("中文", "")},
		{"varchar(10) CHARACTER SET gb2312", q("中文", "")},
		{"varchar(10) CHARACTER SET euckr", q("한국", "")},
		{"varchar(10) CHARACTER SET cp1251", q("Привет №", "")},
		{"varchar(10) CHARACTER SET koi8r", q("Привет", "")},
		{"varchar(10) CHARACTER SET greek", q("Ωμέγα", "")},
		{"varchar(10) CHARACTER SET hebrew", q("שלום", "")},
		{"varchar(10) CHARACTER SET latin2", q("Łódź", "")},
		{"varchar(10) CHARACTER SET tis620", q("ไทย", "")},
		{"varchar(10) COLLATE utf8mb4_bin", q("bin ", "")},
	}},
	{name: "bytes", columns: []column{
		{"binary(5)", []string{"x''", "x'00'", "x'610000'", "x'0000000061'", "x'20'"}},
		{"binary(16)", []string{"x'00112233445566778899aabbccddee00'"}},
		{"varbinary(5)", []string{"x''", "x'0000'", "x'6100'", "x'ff20202000'"}},
		{"varbinary(300)", []string{"REPEAT(x'00', 300)"}},
		{"tinyblob", []string{"x''", "x'00'"}},
		{"blob", []string{"x'00ff5c27'", "REPEAT(x'00ff5c', 7000)"}},
		{"mediumblob", []string{"x'80'"}},
		{"longblob", []string{"x'f09d849e'"}},
		{"char(5) CHARACTER SET binary", []string{"x'6100'", "x''"}},
		{"text CHARACTER SET binary", []string{"x'ff'"}},
		{"point", []string{"ST_GeomFromText('POINT(1.5 -2.5)')", "ST_GeomFromText('POINT(0 0)', 4326)"}},
		{"linestring", []string{"ST_GeomFromText('LINESTRING(0 0,1 1)')"}},
		{"polygon", []string{"ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 0))')"}},
		{"geometry", []string{"ST_GeomFromText('MULTIPOINT(0 0,1 1)')", "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))', 3857)"}},
		{"geometrycollection", []string{"ST_GeomFromText('GEOMETRYCOLLECTION EMPTY')"}},
	}},
	{name: "members", columns: []column{
		{"enum('a','b')", []string{"'b'", "1", "0"}},
		{"enum" + oddLabels, []string{"1", "2", "3", "4", "5", "6", "7"}},
		{"enum('naïve','café') " + latin, []string{"1", "2"}},
		{"enum(" + labels(300) + ")", []string{"1", "255", "256", "300"}},
		{"set('x','y','z')", []string{"'x,z'", "''", "7", "0"}},
		{"set" + oddLabels, []string{"127", "8", "0"}},
		{"set('naïve','café') " + latin, []string{"3", "2"}},
		{"set(" + labels(64) + ")", []string{"18446744073709551615", "9223372036854775808", "1", "0"}},
		{"set(" + labels(33) + ")", []string{"4294967296"}},
		{"set(" + labels(17) + ")", []string{"65536"}},
		{"set(" + labels(9) + ")", []string{"256", "511"}},
		{"varchar(3) CHARACTER SET cp1251", q("Я")},
	}},
	{name: "times", columns: []column{
		{"date", q("1000-01-01", "9999-12-31", "0001-01-01", "0000-00-00", "2024-00-10", "2024-02-00", "0000-01-01", "2024-02-31", "1969-12-31")},
		{"datetime", q("1000-01-01 00:00:00", "9999-12-31 23:59:59", "0000-00-00 00:00:00", "2024-00-10 01:02:03", "1969-12-31 23:59:59")},
		{"datetime(1)", q("2024-02-29 12:00:00.9", "1969-12-31 23:59:59.1")},
		{"datetime(2)", q("2024-02-29 12:00:00.09")},
		{"datetime(3)", q("2024-03-31 02:30:00.001")},
		{"datetime(4)", q("2024-02-29 12:00:00.0001")},
		{"datetime(5)", q("2024-02-29 12:00:00.00001")},
		{"datetime(6)", q("9999-12-31 23:59:59.999999", "1000-01-01 00:00:00.000001", "0000-00-00 00:00:00", "2024-02-00 01:02:03.000004", "1969-12-31 23:59:59.999999", "0000-01-01 00:00:00.5")},
		{"time", q("-838:59:59", "838:59:59", "00:00:00", "12:00:00", "-00:00:01", "-01:00:00")},
		{"time(1)", q("-00:00:00.5", "00:00:00.1", "-100:00:00.9")},
		{"time(2)", q("-00:00:00.05", "00:00:00.01", "-00:00:01.99")},
		{"time(3)", q("-00:00:00.005", "00:00:00.001", "-00:00:59.999")},
		{"time(4)", q("-00:00:00.0005", "00:00:00.0001")},
		{"time(5)", q("-00:00:00.00005", "-00:00:00.99999")},
		{"time(6)", q("-838:59:58.999999", "838:59:58.999999", "-00:00:00.000001", "00:00:00.000001", "-00:00:00.999999", "-23:59:59.5", "12:00:00")},
		{"timestamp NULL", q("1970-01-01 00:00:01", "2038-01-19 03:14:07", "0000-00-00 00:00:00", "2024-03-31 02:30:00")},
		{"timestamp(1) NULL", q("2024-02-29 12:00:00.9", "0000-00-00 00:00:00")},
		{"timestamp(3) NULL", q("2024-02-29 12:00:00.123", "1970-01-01 00:00:01.001")},
		{"timestamp(6) NULL", q("2038-01-19 03:14:07.999999", "2024-02-29 12:00:00.000001", "0000-00-00 00:00:00")},
	}},
	{name: "zeros", columns: []column{ // zero dates live where null is not allowed
		{"date NOT NULL", q("0000-00-00", "2024-02-29")},
		{"datetime(3) NOT NULL", q("0000-00-00 00:00:00", "2024-02-29 01:02:03.004")},
		{"timestamp NOT NULL", q("0000-00-00 00:00:00", "2024-02-29 01:02:03")},
	}},
	{name: "computed", columns: []column{
		{"int INVISIBLE", []string{"1", "2"}},
		{"int AS (c1 * 2) STORED", nil},
		{"varchar(20) AS (CONCAT('c', c1)) VIRTUAL", nil},
		{"int DEFAULT 5", []string{"3", "NULL"}},
	}, more: ", KEY (c2), KEY (c3)"},
}

// ofMySQL and ofMariaDB are the types that only one of them has.
var (
	ofMySQL = []family{
		{name: "documents", columns: []column{
			{"json", append(q(`{"b": 1.10, "a": [null, true, false, "x\"y\\z"], "e": 1E-20, "n": 18446744073709551615, "m": -9223372036854775808}`,
				"null", `"text"`, "{}", "[]", `"\u0001\u001f\b\f\n\r\t\u007f/ä𝄞"`, `[1, -1, 32767, 32768, 65536, 2147483648, 1.0, 100000000000000000000]`, `""`),
				"JSON_OBJECT('d', CAST(1.10 AS DECIMAL(65,30)), 'i', CAST('-0.5' AS DECIMAL(5,4)), 'z', CAST(0 AS DECIMAL(10,2)))",
				"JSON_ARRAY(CAST('2024-02-29' AS DATE), CAST('2024-02-29 01:02:03.4' AS DATETIME(6)), CAST('-838:59:59' AS TIME), CAST('00:00:00.5' AS TIME(3)))",
				"JSON_ARRAY(CAST(x'00ff' AS BINARY), b'101', ST_GeomFromText('POINT(1 2)'))",
				"JSON_ARRAY(CAST(REPEAT('x', 200) AS BINARY), CAST(REPEAT('y', 57) AS BINARY), CAST(REPEAT('z', 114) AS BINARY))",
				"JSON_ARRAY(1e15, 1e16, 123456789012345.6, 1e-14, 1e-15, 1e-5, 0.1, 1e308, 5e-1, -0e0, 1.5e300)",
				"JSON_OBJECT('k', REPEAT('v', 70000), 'l', 70000, 'm', -70000, 's', 5, 'o', JSON_OBJECT('p', JSON_ARRAY(1, 2)))",
				"CAST(CONCAT(REPEAT('[', 99), '1', REPEAT(']', 99)) AS JSON)",
				"CAST(CONCAT('[', REPEAT('123456,', 20000), '1]') AS JSON)",
			)},
			{"vector(3)", []string{"STRING_TO_VECTOR('[1,-0.5,3.4e38]')", "STRING_TO_VECTOR('[1]')"}},
			{"varchar(10) " + latin, q("é")},
			{"varchar(10) CHARACTER SET gb18030", q("中𝄞", "")},
			{"vector(2048)", []string{"STRING_TO_VECTOR(CONCAT('[', REPEAT('0.1,', 2047), '1]'))"}},
		}},
		{name: "zero", columns: []column{{"float", []string{"-0e0"}}, {"double", []string{"-0e0"}}}},
		{name: "functional", columns: []column{{"int", []string{"1", "2"}}}, more: ", KEY ((c1 + 1)), UNIQUE ((ABS(c1)), id)"},
	}
	ofMariaDB = []family{
		{name: "documents", columns: []column{
			{"json", q(`{"b":  1.10, "a": [null]}`, "null", `"\u0001"`)},
			{"varchar(10) " + latin, q("é")},
		}},
		{name: "addresses", columns: []column{
			{"inet6", q("::", "2001:db8::1", "::ffff:192.0.2.1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "::1.2.3.4", "1:0:0:2::")},
			{"inet4", q("0.0.0.0", "255.255.255.255", "10.0.0.1", "192.0.2.0")},
			{"uuid", q("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "00112233-4455-6677-8899-aabbccddeeff",
				"00112233-4455-1677-8899-aabbccddee00", "00112233-4455-4677-c899-aabbccddeeff")},
			{"varchar(10) " + latin, q("é")},
		}},
		{name: "hashed", columns: []column{{"text", q("a", "b")}, {"blob", []string{"x'00'", "x'01'"}}}, more: ", UNIQUE (c1, id), UNIQUE (c2, id)"},
	}
)

// big is a family of values that do not fit into a message of the bus.
var big = family{name: "big", plain: true, columns: []column{
	{"longblob", []string{"REPEAT(x'00ff5c', 1750000)"}},
	{"longtext " + latin, []string{"REPEAT(_utf8mb4'ä€', 1000000)"}},
}}

// table is the name of the family's table.
func (f family) table() string { return "m." + f.name }

func (f family) createSQL() string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (id int PRIMARY KEY, n int NOT NULL DEFAULT 0", f.table())
	for i, c := range f.columns {
		fmt.Fprintf(&b, ", c%d %s", i+1, c.sqlType)
	}
	return b.String() + f.more + ") CHARACTER SET utf8mb4"
}

// stored are the columns that are given values.
func (f family) stored() []string {
	var names []string
	for i, c := range f.columns {
		if c.values != nil {
			names = append(names, fmt.Sprintf("c%d", i+1))
		}
	}
	return names
}

// size is the number of rows.
func (f family) size() int {
	longest := 0
	for _, c := range f.columns {
		longest = max(longest, len(c.values))
	}
	if slices.ContainsFunc(f.columns, func(c column) bool { return strings.Contains(c.sqlType, "NOT NULL") }) {
		return longest
	}
	return longest + 1 // the row of nulls
}

// insertSQL has one row per place in the lists of values.
func (f family) insertSQL() []string {
	var all []string
	for row := range f.size() {
		names, values := "id", fmt.Sprint(row+1)
		for i, c := range f.columns {
			if row < len(c.values) {
				names += fmt.Sprintf(", c%d", i+1)
				values += ", " + c.values[row]
			} else if c.values != nil {
				names += fmt.Sprintf(", c%d", i+1)
				values += ", NULL"
			}
		}
		all = append(all, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", f.table(), names, values))
	}
	return all
}

// again is how much larger the id of a row is that comes by the log.
const again = 1000

// againSQL makes every row once more and changes it, so that it comes by the log in both kinds of events.
func (f family) againSQL() []string {
	stored := strings.Join(f.stored(), ", ")
	return []string{
		fmt.Sprintf("INSERT INTO %s (id, %s) SELECT id + %d, %[2]s FROM %[1]s", f.table(), stored, again),
		fmt.Sprintf("UPDATE %s SET n = 1 WHERE id > %d", f.table(), again),
	}
}
