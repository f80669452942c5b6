package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// MySQLSession connects to a server; the URL may name a database. Sessions speak UTF-8 and count time in UTC.
func MySQLSession(ctx context.Context, address string) (*client.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	conn, err := client.ConnectWithContext(ctx, u.Host, u.User.Username(), password, strings.TrimPrefix(u.Path, "/"), 10*time.Second)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"SET NAMES utf8mb4", "SET time_zone = '+00:00'"} { // MariaDB does not know the driver's collation
		if _, err := conn.Execute(sql); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// IsMariaDB tells which of the two a server is.
func IsMariaDB(conn *client.Conn) bool { return strings.Contains(conn.GetServerVersion(), "MariaDB") }

// MySQLContent reads tables of a database in one snapshot, in the text that changes are read in.
func MySQLContent(ctx context.Context, address, database string, tables []Table) (map[string]Content, error) {
	conn, err := MySQLSession(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	k, err := kindsOf(conn, database)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Execute("START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
		return nil, err
	}
	all := make(map[string]Content)
	for _, t := range tables {
		c := make(Content)
		err := k.each(conn, "SELECT * FROM "+database+"."+t.Name, t.Name, func(row Cells) error { return c.Add(t.Key, row) })
		if err != nil {
			return nil, fmt.Errorf("read %s.%s: %w", database, t.Name, err)
		}
		all[t.Name] = c
	}
	return all, nil
}

// kinds are the types of the columns of a database, of table.column, as information_schema names them. MariaDB's JSON is a text with a
// check; it is "json" here.
type kinds map[string]string

// kindsOf learns the types as they are now.
func kindsOf(conn *client.Conn, database string) (kinds, error) {
	k := make(kinds)
	ask := func(sql string) error {
		r, err := conn.Execute(sql, database)
		if err != nil {
			return err
		}
		for i := range r.RowNumber() {
			var cells [3]string
			for c := range cells {
				if cells[c], err = r.GetString(i, c); err != nil {
					return err
				}
			}
			k[cells[0]+"."+cells[1]] = cells[2]
		}
		return nil
	}
	err := ask("SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = ?")
	if err == nil && IsMariaDB(conn) { // which names such a check after its column
		err = ask("SELECT table_name, constraint_name, 'json' FROM information_schema.check_constraints" +
			" WHERE constraint_schema = ? AND check_clause LIKE 'json\\_valid(%'")
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the columns of %s: %w", database, err)
	}
	return k, nil
}

// each calls do with each row of a query, whose columns are of one table.
func (k kinds) each(conn *client.Conn, sql, table string, do func(Cells) error) error {
	r, err := conn.Execute(sql)
	if err != nil {
		return err
	}
	defer r.Close()
	columns := make([]string, len(r.Fields))
	for i, f := range r.Fields {
		columns[i] = string(f.Name)
	}
	values := make([]any, len(columns))
	for _, row := range r.Values {
		for i := range row {
			values[i] = row[i].Value()
		}
		if err := do(k.cells(table, columns, values)); err != nil {
			return err
		}
	}
	return nil
}

func (k kinds) cells(table string, columns []string, values []any) Cells {
	c := make(Cells)
	for i, name := range columns {
		c[name] = cell(k[table+"."+name], values[i])
	}
	return c
}

// cell is a value of a column in the text that all sides are compared in.
func cell(kind string, v any) *string {
	if v == nil {
		return nil
	}
	var s string
	switch v := v.(type) {
	case []byte:
		s = string(v)
	case float64:
		s = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		s = fmt.Sprint(v)
	}
	switch kind {
	case "json":
		s = JSONText(s)
	case "datetime":
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
	case "blob", "longblob":
		s = `\x` + hex.EncodeToString([]byte(s))
	}
	return &s
}

// JSONText is a JSON value in one form, whatever the spaces, the order of members and the digits of its numbers.
func JSONText(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return "no JSON: " + s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "no JSON: " + s
	}
	return strings.TrimSuffix(b.String(), "\n")
}
