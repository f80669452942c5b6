package mycopies

import (
	"context"
	"crypto/md5" //nolint:gosec // something to fill a column with
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/itest/harness"
)

// Schema is the database that the tables are in.
const Schema = "goods"

// Table is one of the tables. All have the columns n, which names a row, val, price, seen and pad, besides those of the key.
type Table struct {
	// Name is that of the table, without its database.
	Name string
	// columns are the key's, as CREATE TABLE has them; %s stands for a collation that ignores case and accents.
	columns string
	key     []string
	// values are the literals that the key has in the row n.
	values func(n int64) []string
}

// letters begin text keys: the collation has them in another order than their bytes, and takes some of them for one.
var letters = []string{"a", "B", "ä", "Z", "z", "É", "-", "_", "ß", "日"}

// Keyed are the tables with a key: its values are in no order that n has, and of both signs.
func Keyed() []Table {
	return []Table{
		{"by_integer", "id bigint", []string{"id"}, func(n int64) []string { return []string{fmt.Sprint(n*7 - 10_000)} }},
		{
			"by_both", "a smallint unsigned, b varchar(20)",
			[]string{"a", "b"},
			func(n int64) []string { return []string{fmt.Sprint(n % 17), fmt.Sprintf("'b%d'", n)} },
		},
		{
			"by_text", "id varchar(20) CHARACTER SET utf8mb4 COLLATE %s",
			[]string{"id"},
			func(n int64) []string { return []string{fmt.Sprintf("'%s%d'", letters[n%10], n)} },
		},
	}
}

// Bare is the table without a key. Its writers give no row another n.
func Bare() Table { return Table{Name: "bare", values: func(int64) []string { return nil }} }

func all() []Table { return append(Keyed(), Bare()) }

func (t Table) sql() string { return Schema + "." + t.Name }

// fields are the columns that every writer gives: those of the key, n and val. The others are made of them.
func (t Table) fields() string {
	return strings.Join(append(t.key, "n", "val", "price", "seen", "pad"), ", ")
}

// row is the literals of fields, in brackets.
func (t Table) row(n, val int64) string {
	return "(" + strings.Join(append(t.values(n), fmt.Sprint(n), fmt.Sprint(val), price(val), seen(val), fmt.Sprintf("'%x'", md5.Sum(fmt.Append(nil, n)))), ", ") + ")" //nolint:gosec // as above
}

func price(val int64) string { return fmt.Sprintf("%d.%04d", val, val%10_000) }

// seen is a time or none.
func seen(val int64) string {
	if val%5 == 0 {
		return "NULL"
	}
	return fmt.Sprintf("'19%02d-01-01 00:00:00' + INTERVAL %d MICROSECOND", val%100, val)
}

// where finds the row that n names, if it still has the key of n. It has no row constructor, for which MariaDB reads the whole
// table and locks it.
func (t Table) where(n int64) string {
	terms := []string{fmt.Sprintf("n = %d", n)}
	for i, v := range t.values(n) {
		terms = append(terms, t.key[i]+" = "+v)
	}
	return strings.Join(terms, " AND ")
}

// name is an expression, for either server, for the text by which a row is known: that of its key, or of n where there is none.
func (t Table) name(of string) string {
	if len(t.key) == 0 {
		return "concat(" + of + "n)"
	}
	var cells []string
	for _, k := range t.key {
		cells = append(cells, of+k)
	}
	return "concat_ws('/', " + strings.Join(cells, ", ") + ")"
}

// trigger writes down what statements do to a table: what they are, which row is gone, which one has a value.
const trigger = `CREATE TRIGGER %[1]s.%[2]s_%[3]s AFTER %[3]s ON %[1]s.%[2]s FOR EACH ROW BEGIN %[4]s END`

const (
	ended = "INSERT INTO truth.history (place, name) VALUES ('%s', %s);"
	given = "INSERT INTO truth.history (place, name, val) VALUES ('%s', %s, NEW.val);"
	moved = "IF CAST(%s AS BINARY) <> CAST(%s AS BINARY) THEN %s END IF;"
)

// Fill makes the tables with so many rows each.
func Fill(ctx context.Context, server *harness.MySQL, rows int) error {
	conn, err := connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	loose := "utf8mb4_0900_ai_ci"
	if server.MariaDB() {
		loose = "utf8mb4_uca1400_ai_ci"
	}
	sql := []string{
		"CREATE DATABASE goods", "CREATE DATABASE truth",
		`CREATE TABLE truth.history (at bigint PRIMARY KEY AUTO_INCREMENT, place varchar(20) NOT NULL,
			name varchar(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, val bigint)`,
	}
	for _, t := range all() {
		sql = append(sql, t.make(loose)...)
		sql = append(sql, t.fill(rows)...)
		sql = append(sql, fmt.Sprintf("INSERT INTO truth.history (place, name, val) SELECT '%s', %s, val FROM %s", t.Name, t.name(""), t.sql()))
		gone, now := fmt.Sprintf(ended, t.Name, t.name("OLD.")), fmt.Sprintf(given, t.Name, t.name("NEW."))
		sql = append(sql,
			fmt.Sprintf(trigger, Schema, t.Name, "INSERT", now),
			fmt.Sprintf(trigger, Schema, t.Name, "UPDATE", fmt.Sprintf(moved, t.name("OLD."), t.name("NEW."), gone)+now),
			fmt.Sprintf(trigger, Schema, t.Name, "DELETE", gone))
	}
	for _, s := range sql {
		if _, err := conn.Execute(s); err != nil {
			return fmt.Errorf("fill the tables: %.80s: %w", s, err)
		}
	}
	return nil
}

// connect opens a connection whose texts are UTF-8, whatever the server takes for its default.
func connect(ctx context.Context, server *harness.MySQL) (*client.Conn, error) {
	conn, err := server.Connect(ctx, "")
	if err != nil {
		return nil, err
	}
	if _, err := conn.Execute("SET NAMES utf8mb4"); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func (t Table) make(loose string) []string {
	columns, key := "", ", KEY (n)"
	if len(t.key) > 0 {
		columns, key = strings.ReplaceAll(t.columns, "%s", loose)+", ", ", PRIMARY KEY ("+strings.Join(t.key, ", ")+")"
	}
	return []string{fmt.Sprintf("CREATE TABLE %s (%sn bigint NOT NULL, val bigint NOT NULL, price decimal(30,4) NOT NULL, "+
		"seen datetime(6), pad varchar(40) NOT NULL%s) DEFAULT CHARSET utf8mb4", t.sql(), columns, key)}
}

// fill inserts the rows 1 to rows, a thousand by statement.
func (t Table) fill(rows int) []string {
	var sql, values []string
	for n := range int64(rows) {
		values = append(values, t.row(n+1, n+1))
		if len(values) == 1000 || n+1 == int64(rows) {
			sql = append(sql, fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", t.sql(), t.fields(), strings.Join(values, ", ")))
			values = nil
		}
	}
	return sql
}
