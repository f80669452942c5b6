package mysql

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"pgregory.net/rapid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/transact"
)

func TestWider(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b   string
		wider  bool
		rounds bool // a column of a takes a value of b and changes it
	}{
		{"bigint", "int", true, false},
		{"int", "bigint", false, false},
		{"bigint", "int unsigned", true, false},
		{"int unsigned", "int", false, false},
		{"bigint unsigned", "bigint", false, false},
		{"decimal(20,2)", "decimal(10,2)", true, false},
		{"decimal(20,2)", "decimal(20,4)", false, true},
		{"decimal(20,0)", "bigint", true, false},
		{"decimal(19,0)", "bigint unsigned", false, true},
		{"int", "decimal(5,2)", false, true},
		{"double", "float", true, false},
		{"float", "double", false, true},
		{"longtext", "varchar(20)", true, false},
		{"varchar(30)", "varchar(20)", true, false},
		{"varchar(10)", "varchar(20)", false, false},
		{"char(30)", "varchar(20)", false, false},
		{"longblob", "varbinary(9)", true, false},
		{"longblob", "longtext", false, false},
		{"datetime(6)", "datetime", true, false},
		{"datetime", "datetime(6)", false, true},
		{"date", "datetime", false, true},
		{"enum('a','b','c')", "enum('a','b')", true, false},
		{"enum('a','c')", "enum('a','b')", false, false},
		{"longtext", "enum('a')", true, false},
	} {
		if got := wider(tt.a, tt.b); got != tt.wider {
			t.Errorf("wider(%s, %s) = %t", tt.a, tt.b, got)
		}
		if got := rounds(tt.a, tt.b); got != tt.rounds {
			t.Errorf("rounds(%s, %s) = %t", tt.a, tt.b, got)
		}
	}
}

// An index and a row have room for the columns that are chosen, whatever the source declares.
func TestColumnTypesFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := []string{"", "varchar(20)", "varchar(16000)", "varbinary(3000)", "character varying(700)", "longtext", "char(36)", "bigint"}
		kinds := []rows.Kind{rows.KindText, rows.KindBytes, rows.KindInt64, rows.KindUUID, rows.KindDecimalText}
		keys := rapid.IntRange(1, 4).Draw(t, "keys")
		var columns []rows.Column
		for i := range rapid.IntRange(keys, 12).Draw(t, "columns") {
			c := rows.Column{Name: string(rune('a' + i)), Type: rows.Of(rapid.SampledFrom(kinds).Draw(t, "kind")), Source: rapid.SampledFrom(words).Draw(t, "word")}
			if i < keys {
				c.KeyPos = i + 1
			}
			columns = append(columns, c)
		}
		s, err := rows.NewSchema("s.t", 1, rapid.SampledFrom([]string{"mysql", "postgres"}).Draw(t, "origin"), columns)
		if err != nil {
			t.Fatal(err)
		}
		index, row := 0, 0
		for i, typ := range columnTypes(s) {
			row += bytesOf(typ)
			if s.Column(i).KeyPos == 0 {
				continue
			}
			index += bytesOf(typ)
			if family, _ := familyOf(typ); (family == familyText || family == familyBytes) && bytesOf(typ) == 0 {
				t.Fatalf("key column of %s", typ)
			}
		}
		if index > keyBytes || row > rowBytes {
			t.Fatalf("index of %d bytes, row of %d: %v", index, row, columnTypes(s))
		}
	})
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.StringOf(rapid.SampledFrom([]rune{'\'', 'a', '\\', 'ß'})).Draw(t, "text")
		before := rapid.SampledFrom([]string{"", "x"}).Draw(t, "before")
		if got, want := string(appendText([]byte(before), v)), before+"'"+strings.ReplaceAll(v, "'", "''")+"'"; got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// Errors name columns and constraints, and never quote a value.
func TestServerErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code    uint16
		message string
		want    fault.Code
		names   string
	}{
		{1062, "Duplicate entry 'secret' for key 'people.email'", fault.SinkConstraint, "people.email"},
		{3819, "Check constraint 'harmless' is violated.", fault.SinkConstraint, "harmless"},
		{4025, "CONSTRAINT `harmless` failed for `out`.`people`", fault.SinkConstraint, "harmless"},
		{1366, "Incorrect integer value: 'secret column 'x' for column 'amount' at row 1", fault.SinkRow, "amount"},
		{1366, "Incorrect integer value: 'secret' for column `out`.`people`.`amount` at row 1", fault.SinkRow, "amount"},
		{1406, "Data too long for column 'email' at row 1", fault.SinkRow, "email"},
		{1205, "Lock wait timeout exceeded; try restarting transaction", fault.SinkBusy, ""},
		{1290, "The MySQL server is running with the --read-only option", fault.SinkReadOnly, ""},
		{1045, "Access denied for user 'secret'@'localhost'", fault.SinkWrongPassword, ""},
	} {
		err := translate(t.Context(), &mysql.MyError{Code: tt.code, Message: tt.message}, transact.Place{Sink: "sinks.w"})
		if fault.CodeOf(err) != tt.want || !strings.Contains(err.Error(), tt.names) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", tt.message, err)
		}
	}
}
