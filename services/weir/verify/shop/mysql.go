package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
)

// mysqlTables is the shop for MySQL: the same tables and keys, as near to [Schema] as its types allow. What an order has to do with its
// items is kept by statements and not by cascades, which MySQL below 9.6 does not log.
var mysqlTables = []string{
	`CREATE TABLE shop.customers (
		id         bigint PRIMARY KEY,
		email      varchar(200) NOT NULL UNIQUE,
		name       varchar(200) NOT NULL,
		country    varchar(8),
		active     boolean NOT NULL DEFAULT true,
		created_at datetime(6) NOT NULL,
		profile    json NOT NULL,
		tags       json)`,
	`CREATE TABLE shop.products (
		sku         varchar(64) PRIMARY KEY,
		ean         char(36) NOT NULL,
		name        varchar(400) NOT NULL,
		price       decimal(12,2) NOT NULL,
		stock       int NOT NULL,
		weight_kg   double,
		launched    date,
		thumbnail   blob,
		description mediumtext NOT NULL)`,
	`CREATE TABLE shop.orders (
		id          bigint PRIMARY KEY,
		customer_id bigint NOT NULL REFERENCES shop.customers (id),
		status      varchar(20) NOT NULL,
		total       decimal(14,2) NOT NULL,
		placed_at   datetime(6) NOT NULL,
		note        text)`,
	`CREATE TABLE shop.order_items (
		order_id bigint NOT NULL,
		line     smallint NOT NULL,
		sku      varchar(64) NOT NULL,
		quantity int NOT NULL,
		price    decimal(12,2) NOT NULL,
		PRIMARY KEY (order_id, line))`,
}

// MySQLSchema makes the shop in a database of its own, whose name needs no quotes, one statement after the other.
func MySQLSchema(database string) []string {
	all := []string{"CREATE DATABASE " + database + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"}
	for _, sql := range mysqlTables {
		all = append(all, in(database, sql))
	}
	return all
}

// RunMySQL is [Run] for a shop in MySQL.
func RunMySQL(ctx context.Context, conn *client.Conn, g *Generator, load Load) (applied int, err error) {
	return drive(ctx, g, load, func(_ context.Context, t Transaction) error { return applyMySQL(conn, t) })
}

func applyMySQL(conn *client.Conn, t Transaction) error {
	if err := conn.Begin(); err != nil {
		return err
	}
	for _, s := range t.Statements {
		for _, one := range forMySQL(s) {
			if _, err := conn.Execute(one.SQL, one.Args...); err != nil {
				_ = conn.Rollback() // the first error is the reason
				return fmt.Errorf("%.60s: %w", one.SQL, err)
			}
		}
	}
	if t.Rollback {
		return conn.Rollback()
	}
	return conn.Commit()
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// forMySQL says a statement in MySQL's words, with what a cascade would do before it.
func forMySQL(s Statement) []Statement {
	var all []Statement
	switch {
	case strings.HasPrefix(s.SQL, "DELETE FROM ") && strings.Contains(s.SQL, ".orders "), strings.Contains(s.SQL, ".orders SET id"):
		items := strings.NewReplacer(".orders", ".order_items", " id ", " order_id ").Replace(s.SQL)
		all = append(all, positional(Statement{SQL: items, Args: s.Args}))
	case strings.Contains(s.SQL, "jsonb_build_object"):
		s.SQL = strings.ReplaceAll(s.SQL, "profile || jsonb_build_object('campaign', $1::text)", "JSON_SET(profile, '$.campaign', $1)")
	}
	return append(all, positional(s))
}

// positional gives parameters the places that their numbers say.
func positional(s Statement) Statement {
	var args []any
	sql := parameter.ReplaceAllStringFunc(s.SQL, func(p string) string {
		n, _ := strconv.Atoi(p[1:]) // digits, by the pattern
		args = append(args, mysqlValue(s.Args[n-1]))
		return "?"
	})
	return Statement{SQL: sql, Args: args}
}

func mysqlValue(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05.999999")
	case []string:
		if v == nil {
			return nil
		}
		b, _ := json.Marshal(v) // texts can be encoded
		return string(b)
	}
	return v
}
