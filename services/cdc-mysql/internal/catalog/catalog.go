package catalog

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// Table is a table of the server as it is now.
type Table struct {
	core.Name

	// Obstacle is why the table cannot be captured; empty when it can.
	Obstacle string
	// RowBytes and Rows are the server's estimates; 0 when it has none.
	RowBytes, Rows int64
	Columns        []Column
	// Key are the columns of the primary key, in its order.
	Key []string
	// Prefixed says that the key has only the beginnings of some columns.
	Prefixed bool
}

// Column is a column of a table.
type Column struct {
	Name     string
	Nullable bool
	Codec    mycodec.Codec
	// Err is why the type cannot be read.
	Err error
	// Bytewise says that the collation is the order of bytes.
	Bytewise bool
	// Collation and Words are the server's, to notice changes by.
	Collation, Words string
}

// Signature is equal as long as the columns that are read are.
func (t *Table) Signature() string {
	var b strings.Builder
	for _, c := range t.Columns {
		fmt.Fprintf(&b, "%q %s %s %t;", c.Name, c.Words, c.Collation, c.Nullable)
	}
	fmt.Fprintf(&b, "%q", t.Key)
	return b.String()
}

// List finds the tables of all databases but the server's own.
func List(ctx context.Context, s *server.Session) ([]*Table, error) {
	var all []*Table
	err := s.Query(ctx, "SELECT table_schema, table_name, table_type, engine, avg_row_length, table_rows FROM information_schema.tables "+
		"WHERE table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') AND table_type LIKE '%TABLE%' "+
		"ORDER BY table_schema, table_name", func(c [][]byte) error {
		t := &Table{Name: core.Name{Schema: string(c[0]), Table: string(c[1])}, RowBytes: number(c[4]), Rows: number(c[5])}
		switch {
		case string(c[2]) != "BASE TABLE":
			t.Obstacle = "a " + strings.ToLower(string(c[2]))
		case !strings.EqualFold(string(c[3]), "InnoDB"):
			t.Obstacle = "a table of engine " + string(c[3]) + ", whose changes are visible before they are logged,"
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

func number(cell []byte) int64 {
	n, _ := strconv.ParseInt(string(cell), 10, 64) // NULL is 0
	return n
}

// Describe reads columns and keys of tables.
func Describe(ctx context.Context, s *server.Session, tables []*Table) error {
	byName := make(map[core.Name]*Table, len(tables))
	names := make([]string, 0, len(tables))
	for _, t := range tables {
		t.Columns, t.Key = nil, nil
		byName[t.Name] = t
		names = append(names, "("+Text(t.Schema)+", "+Text(t.Table)+")")
	}
	if len(names) == 0 {
		return nil
	}
	which := " WHERE (table_schema, table_name) IN (" + strings.Join(names, ", ") + ")"
	err := s.Query(ctx, "SELECT table_schema, table_name, column_name, is_nullable, data_type, column_type, character_octet_length, "+
		"numeric_precision, numeric_scale, datetime_precision, character_set_name, collation_name FROM information_schema.columns"+
		which+" ORDER BY table_schema, table_name, ordinal_position", func(c [][]byte) error {
		t := byName[core.Name{Schema: string(c[0]), Table: string(c[1])}]
		if t == nil {
			return nil // another in letter case only
		}
		col := Column{Name: string(c[2]), Nullable: string(c[3]) == "YES", Words: string(c[5]), Collation: string(c[11])}
		col.Bytewise = col.Collation == "utf8mb4_0900_bin" || col.Collation == "utf8mb4_nopad_bin"
		col.Codec, col.Err = mycodec.OfCatalog(mycodec.CatalogColumn{
			DataType: string(c[4]), ColumnType: string(c[5]), OctetLength: uint64(number(c[6])), Precision: int(number(c[7])),
			Scale: int(number(c[8])), Fraction: int(number(c[9])), Charset: string(c[10]),
		})
		t.Columns = append(t.Columns, col)
		return nil
	})
	if err != nil {
		return err
	}
	return s.Query(ctx, "SELECT table_schema, table_name, column_name, sub_part FROM information_schema.statistics"+which+
		" AND index_name = 'PRIMARY' ORDER BY table_schema, table_name, seq_in_index", func(c [][]byte) error {
		if t := byName[core.Name{Schema: string(c[0]), Table: string(c[1])}]; t != nil {
			t.Key = append(t.Key, string(c[2]))
			t.Prefixed = t.Prefixed || c[3] != nil
		}
		return nil
	})
}

// counter is what the definition of a table says of the next value that it hands out.
var counter = regexp.MustCompile(` AUTO_INCREMENT=[0-9]+`)

// Definition is the server's text for a table. As long as it is the same, so is the signature; it may change when that does not. It
// costs the server a small part of what [Describe] does.
func Definition(ctx context.Context, s *server.Session, name core.Name) (string, error) {
	row, err := s.One(ctx, "SHOW CREATE TABLE "+name.Quoted())
	if err != nil || len(row) < 2 {
		return "", cmp.Or(err, fmt.Errorf("table %s has no definition: %w", name, fault.Bug))
	}
	return uncounted(row[1]), nil
}

// uncounted leaves out of a definition the number that is handed out next. What is written behind the columns begins with the engine;
// a comment may have these words too, and lies behind the number.
func uncounted(text string) string {
	options := strings.LastIndex(text, "\n) ENGINE=")
	if options < 0 {
		return text
	}
	if at := counter.FindStringIndex(text[options:]); at != nil {
		text = text[:options+at[0]] + text[options+at[1]:]
	}
	return text
}

// Text is a text of SQL, under settings in which a backslash is none.
func Text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Charsets are the names of character sets by the numbers of collations.
func Charsets(ctx context.Context, s *server.Session, f *server.Facts) (map[uint64]string, error) {
	sql := "SELECT id, character_set_name FROM information_schema.collations"
	if f.MariaDB {
		sql = "SELECT id, character_set_name FROM information_schema.collation_character_set_applicability"
	}
	sets := make(map[uint64]string)
	return sets, s.Query(ctx, sql, func(c [][]byte) error {
		sets[uint64(number(c[0]))] = string(c[1])
		return nil
	})
}
