package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// mySource is a shop in MySQL.
type mySource struct {
	url, id string

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
	err = s.ask(ctx, func(conn *client.Conn) error {
		r, err := conn.Execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' ORDER BY id DESC LIMIT 1")
		if err != nil {
			return err
		}
		id, err := r.GetInt(0, 0)
		who = fmt.Sprintf("the log, in connection %d", id)
		return err
	})
	return who, err
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

// run runs statements in a session of its own.
func (s *mySource) run(ctx context.Context, statements ...string) error {
	return s.ask(ctx, func(conn *client.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Execute(sql); err != nil {
				return fmt.Errorf("%.60q: %w", sql, err)
			}
		}
		return nil
	})
}

func (s *mySource) ask(ctx context.Context, do func(*client.Conn) error) error {
	conn, err := audit.MySQLSession(ctx, s.url)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close())
}

// mysqlVersion asks for the version and refuses a server whose log cannot be audited.
func mysqlVersion(ctx context.Context, url string) (v string, err error) {
	err = (&mySource{url: url}).ask(ctx, func(conn *client.Conn) error {
		r, err := conn.Execute("SELECT @@version")
		if err != nil {
			return err
		}
		if v, err = r.GetString(0, 0); err != nil {
			return err
		}
		for _, want := range [][2]string{{"gtid_mode", "ON"}, {"binlog_format", "ROW"}, {"binlog_row_image", "FULL"}, {"binlog_row_metadata", "FULL"}} {
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
	return "MySQL " + v, err
}
