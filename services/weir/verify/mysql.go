package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// mySource is a shop in MySQL or MariaDB.
type mySource struct {
	myServer
	id string

	oracle *audit.Binlog
}

func (s *mySource) shop() string { return s.id + "_shop" }

func (s *mySource) role() string { return "cdc-mysql" }

func (s *mySource) spec() string {
	return fmt.Sprintf(`{type: mysql, url: "${VERIFY_SOURCE}", tables: ["%s.*"], snapshot: {mode: never}}`, s.shop())
}

func (s *mySource) begin(ctx context.Context) (err error) {
	if err = s.run(ctx, shop.MySQLSchema(s.shop())...); err == nil {
		s.oracle, err = audit.OpenBinlog(ctx, s.url, s.shop(), shopTables())
	}
	return err
}

func (s *mySource) load(ctx context.Context, seed uint64, load shop.Load) (func(context.Context) error, error) {
	conn, err := audit.MySQLSession(ctx, s.url)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := shop.RunMySQL(ctx, conn, shop.In(s.shop(), seed), load)
		return errors.Join(err, conn.Close())
	}, nil
}

func (s *mySource) changes(ctx context.Context) ([]audit.Change, error) { return s.oracle.Changes(ctx) }

func (s *mySource) content(ctx context.Context) (map[string]audit.Content, error) {
	return s.oracle.Content(ctx)
}

func (s *mySource) bulk(ctx context.Context) error {
	return s.run(ctx, fmt.Sprintf(`INSERT INTO %s.customers (id, email, name, created_at, profile)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000), m (j) AS (SELECT 0 UNION ALL SELECT j + 1 FROM m WHERE j < 4)
		SELECT 1000000000 + 1000 * j + i, concat(1000 * j + i, '@example.com'), 'one of many', utc_timestamp(6), json_object('text', repeat('x', 200)) FROM n, m`, s.shop()))
}

func (s *mySource) addColumn(ctx context.Context, table, column string) error {
	return s.run(ctx,
		fmt.Sprintf("ALTER TABLE %s.%s ADD COLUMN %s text", s.shop(), table, column),
		fmt.Sprintf("UPDATE %s.%s SET %s = 'new' WHERE crc32(%s) %% 7 = 0", s.shop(), table, column, shop.Key(table)[0]))
}

func (s *mySource) poison(ctx context.Context, n int) error {
	return s.run(ctx, fmt.Sprintf(`INSERT INTO %s.products (sku, ean, name, price, stock, description)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT concat('BAD-', i), uuid(), 'poison', 1, 1, '' FROM n`, s.shop(), n))
}

func (s *mySource) held(ctx context.Context) (who string, err error) {
	id, err := s.session(ctx, func(s session) bool { return strings.HasPrefix(s.command, "Binlog Dump") })
	return fmt.Sprintf("the log, in connection %d", id), err
}

// plain: the server writes JSON with spaces and numbers of its own.
func (s *mySource) plain(column, text string) string {
	if slices.Contains([]string{"profile", "tags"}, column) {
		return audit.JSONText(text)
	}
	return text
}

func (s *mySource) end(ctx context.Context) error {
	return s.run(ctx, "DROP DATABASE IF EXISTS "+s.shop())
}

// mysqlVersion says which server it is.
func mysqlVersion(ctx context.Context, url string) (v string, err error) {
	name := mySQL
	err = myServer{url}.ask(ctx, func(conn *client.Conn) error {
		if audit.IsMariaDB(conn) {
			name = mariaDB
		}
		r, err := conn.Execute("SELECT @@version")
		if err == nil {
			v, err = r.GetString(0, 0)
		}
		return err
	})
	return name + " " + v, err
}

// rowLog refuses a server whose log cannot be audited.
func rowLog(ctx context.Context, url string) error {
	return myServer{url}.ask(ctx, func(conn *client.Conn) error {
		wanted := [][2]string{{"binlog_format", "ROW"}, {"binlog_row_image", "FULL"}, {"binlog_row_metadata", "FULL"}}
		if !audit.IsMariaDB(conn) {
			wanted = append(wanted, [2]string{"gtid_mode", "ON"})
		}
		for _, want := range wanted {
			r, err := conn.Execute("SELECT @@" + want[0])
			if err != nil {
				return err
			}
			if got, err := r.GetString(0, 0); err != nil || got != want[1] {
				return errors.Join(err, fmt.Errorf("%s is %s and has to be %s", want[0], got, want[1]))
			}
		}
		return nil
	})
}
