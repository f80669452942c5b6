package main

import (
	"context"
	_ "embed"
	"fmt"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mycopies"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// origin is the shop's own database, which the demo copies from.
type origin interface {
	// Address and close are of its server.
	Address() string
	Close() error
	// url is what the job connects to, and look a command for a person who wants to do so.
	url() string
	look() string
	// fill makes the tables.
	fill(ctx context.Context) error
	// open starts the load.
	open(ctx context.Context, cfg config) (*till, error)
	// torn is a query of the copy for what only half a transaction leaves there; empty when nothing tells.
	torn() string
	// compare holds the copy against the tables, row by row, and says what it found.
	compare(ctx context.Context, target *harness.Postgres) (findings []string, equal bool, err error)
}

// kind of origin, by its name on the command line.
type kind struct {
	title string // of the server
	spec  string // the job file
	run   func(ctx context.Context) (origin, error)
}

//go:embed shop.yaml
var shopSpec string

//go:embed goods.yaml
var goodsSpec string

func kinds() map[string]kind {
	return map[string]kind{
		"postgres": {"PostgreSQL", shopSpec, func(ctx context.Context) (origin, error) {
			server, err := harness.RunPostgres(ctx, harness.PostgresConfig{})
			return postgres{server}, err
		}},
		"mysql": {"MySQL", goodsSpec, func(ctx context.Context) (origin, error) {
			server, err := harness.RunMySQL(ctx, harness.MySQLConfig{})
			return mysql{server}, err
		}},
		"mariadb": {"MariaDB", goodsSpec, func(ctx context.Context) (origin, error) {
			server, err := harness.RunMariaDB(ctx, harness.MySQLConfig{})
			return mysql{server}, err
		}},
	}
}

// postgres has the shop of package shop, empty at first.
type postgres struct{ *harness.Postgres }

func (p postgres) url() string  { return p.URL("postgres") }
func (p postgres) look() string { return fmt.Sprintf("psql '%s'", p.url()) }
func (p postgres) torn() string { return shop.Torn("shop") }

func (p postgres) fill(ctx context.Context) error { return p.Exec(ctx, "postgres", shop.Schema) }

func (p postgres) open(ctx context.Context, cfg config) (*till, error) {
	return openShop(ctx, p.Postgres, cfg)
}

func (p postgres) compare(ctx context.Context, target *harness.Postgres) (findings []string, equal bool, err error) {
	var pairs []audit.TablePair
	for _, table := range shop.Tables() {
		pairs = append(pairs, audit.TablePair{Source: "shop." + table, Target: "shop." + table})
	}
	outcomes, err := audit.CompareTables(ctx, audit.CompareConfig{
		SourceURL: p.url(), TargetURL: target.URL("postgres"), Tables: pairs,
		Values: true, // invented people
	})
	equal = true
	for _, c := range outcomes {
		findings = append(findings, c.String())
		equal = equal && c.Equal()
	}
	return findings, equal, err
}

// goodsRows is how many rows each table of a MySQL or MariaDB origin has before the job begins.
const goodsRows = 5000

// mysql has the tables of package mycopies, each with its own kind of key.
type mysql struct{ *harness.MySQL }

func (m mysql) url() string { return m.URL("") }
func (m mysql) look() string {
	return fmt.Sprintf("mysql -h 127.0.0.1 -P %d -u %s -p'%s' %s", m.Port, m.Admin.Name, m.Admin.Password, mycopies.Schema)
}
func (m mysql) torn() string { return "" }

func (m mysql) fill(ctx context.Context) error { return mycopies.Fill(ctx, m.MySQL, goodsRows) }

func (m mysql) open(ctx context.Context, cfg config) (*till, error) {
	load, err := mycopies.Open(ctx, m.MySQL, goodsRows, cfg.Rate, cfg.Seed)
	if err != nil {
		return nil, err
	}
	return &till{applied: load.Applied, close: load.Close}, nil
}

func (m mysql) compare(ctx context.Context, target *harness.Postgres) (findings []string, equal bool, err error) {
	conn, err := target.Connect(ctx, "postgres")
	if err != nil {
		return nil, false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	equal = true
	for _, table := range mycopies.Keyed() {
		rows, err := mycopies.Compare(ctx, m.MySQL, conn, mycopies.Schema, table)
		finding := fmt.Sprintf("%s.%s: %d rows, all equal", mycopies.Schema, table.Name, rows)
		if err != nil {
			finding, equal = err.Error(), false
		}
		findings = append(findings, finding)
	}
	return findings, equal, nil
}
