package verify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// What can be verified, as people say it.
const (
	postgreSQL = "PostgreSQL"
	mySQL      = "MySQL"
	mariaDB    = "MariaDB"
	iceberg    = "Iceberg"
)

// pair is from what to what a job moves changes.
type pair struct{ from, to string }

func (p pair) String() string { return p.from + " -> weir -> " + p.to }

// pairOf reads from addresses what they are of.
func pairOf(source, target string) (pair, error) {
	var p pair
	for _, v := range []struct {
		name, value string
		kinds       map[string]string
		forms       string
		found       *string
	}{
		{
			"--source", source,
			map[string]string{"postgres": postgreSQL, "postgresql": postgreSQL, "mysql": mySQL},
			"postgres:// or mysql://user:password@host:port/database", &p.from,
		},
		{
			"--target", target,
			map[string]string{"postgres": postgreSQL, "postgresql": postgreSQL, "mysql": mySQL, "file": iceberg},
			"postgres://user:password@host:port/database, mysql://user:password@host:port or file:///folder", &p.to,
		},
	} {
		u, err := url.Parse(v.value)
		if v.value == "" {
			return p, fmt.Errorf("%s is missing", v.name)
		}
		if err == nil {
			*v.found = v.kinds[u.Scheme]
		}
		if *v.found == "" || *v.found != iceberg && u.Port() == "" || *v.found == iceberg && (u.Host != "" || !strings.HasPrefix(u.Path, "/")) {
			return p, fmt.Errorf("%s is not of the form %s", v.name, v.forms)
		}
	}
	return p, nil
}

// source is the database of a run's shop, and what the run makes there, named after it.
type source interface {
	// role is that of the processes that read it, spec its lines in the job's file, with ${VERIFY_SOURCE} for its address.
	role() string
	spec() string
	// begin makes the shop's tables and opens the oracle.
	begin(ctx context.Context) error
	// load connects, and returns what runs the shop's load until its context ends.
	load(ctx context.Context, seed uint64, load shop.Load) (func(context.Context) error, error)
	// changes is what was committed since begin, content what the tables hold now.
	changes(ctx context.Context) ([]audit.Change, error)
	content(ctx context.Context) (map[string]audit.Content, error)
	// bulk commits one transaction of 5,000 rows.
	bulk(ctx context.Context) error
	// addColumn adds a column of text to a table and gives every seventh row a value there.
	addColumn(ctx context.Context, table, column string) error
	// poison commits rows that a target with a bad taste does not take, see [target]; n of them, in one transaction.
	poison(ctx context.Context, n int) error
	// held proves that somebody reads the log for the run, and says who.
	held(ctx context.Context) (string, error)
	// plain is a cell of either side in the form in which they are compared.
	plain(column, text string) string
	// end drops what begin made, and what the job made for itself.
	end(ctx context.Context) error
}

// target is where a run's changes go, and what the run makes there, named after it.
type target interface {
	// line is the address of its server; empty when it has none.
	line() string
	// spec is its lines in the job's file, with so many writers and ${VERIFY_TARGET} for its address, letters for bad rows of the sink
	// copy if wanted; parallel reports that there can be several writers. sinks are their names.
	spec(writers int, letters bool) string
	parallel() bool
	sinks() []string
	begin(ctx context.Context) error
	// watch looks at what every sink makes until the readers are stopped, one for each.
	watch(ctx context.Context, durable func(context.Context) (uint64, bool)) []*audit.Reader
	// changes and content are what the changelog and the current tables hold.
	changes(ctx context.Context) ([]audit.Change, error)
	content(ctx context.Context) (map[string]audit.Content, error)
	// judged reports that somebody else has read the target, who shares no code with this program, and found the same; false without an
	// error when nobody is asked.
	judged(ctx context.Context) (bool, error)
	// ledger is what a sink has committed, ledgerAt the newest epoch of it.
	ledger(ctx context.Context, sink string) ([]verdict.Applied, error)
	ledgerAt(ctx context.Context, sink string) (int64, error)

	// hold keeps the next commit of the sink copy from being done until release; readers are not held up. heldUp waits for one that is
	// held, and says how it waits; stuck proves that it still does when its process is frozen and everybody else has let go.
	hold(ctx context.Context) (release func() error, err error)
	heldUp(ctx context.Context, t *trial) (commit string, err error)
	stuck(ctx context.Context, t *trial, commit string) error
	// before, within and after break a commit at those sides of its end; after: it is done, and nobody hears of it.
	before(ctx context.Context, t *trial) error
	within(ctx context.Context, t *trial) error
	after(ctx context.Context, t *trial) error
	// away lets nobody commit, slow everybody only late, until back.
	away(ctx context.Context, t *trial) (what string, back func() error, err error)
	slow(ctx context.Context, t *trial) (what string, back func() error, err error)

	// spoil gives the copy a constraint that a poisoned row violates, until cure.
	spoil(ctx context.Context) error
	cure(ctx context.Context) error
	end(ctx context.Context) error
}

// shopTables are the tables of the load with their keys.
func shopTables() []audit.Table {
	var tables []audit.Table
	for _, name := range shop.Tables() {
		tables = append(tables, audit.Table{Name: name, Key: shop.Key(name)})
	}
	return tables
}

// sides makes what a run with this id has at both ends; mesh is its folder.
func (c Config) sides(id string) (source, target, error) {
	p, err := pairOf(c.Source, c.Target)
	if err != nil {
		return nil, nil, err
	}
	var from source = &pgSource{url: c.Source, id: id, loose: p.to == mySQL}
	if p.from == mySQL {
		from = &mySource{myServer: myServer{c.Source}, id: id}
	}
	var to target
	switch p.to {
	case postgreSQL:
		to = newPGTarget(c.Target, id)
	case mySQL:
		to = newMyTarget(c.Target, id)
	case iceberg:
		to, err = newIceTarget(c.Target, id, c.Judge, p.from == mySQL)
	}
	return from, to, err
}

// versions asks both sides what they are. An error of the code CLI_VERIFY_DATABASE says which one cannot be used.
func (c Config) versions(ctx context.Context, p pair) (from, to string, err error) {
	ask := map[string]func(context.Context, string) (string, error){postgreSQL: postgresVersion, mySQL: mysqlVersion}
	fit := map[string]func(context.Context, string) error{postgreSQL: logical, mySQL: rowLog}
	if from, err = ask[p.from](ctx, c.Source); err == nil {
		err = fit[p.from](ctx, c.Source)
	}
	if err != nil {
		return "", "", unusable(err, "--source")
	}
	if p.to == iceberg {
		to, err = icebergVersion(ctx, c.Target, c.Judge)
	} else {
		to, err = ask[p.to](ctx, c.Target)
	}
	if err != nil {
		return "", "", unusable(err, "--target")
	}
	return from, to, nil
}

func postgresVersion(ctx context.Context, url string) (string, error) {
	v, err := value[string](ctx, url, "SHOW server_version")
	return "PostgreSQL " + v, err
}

// logical refuses a server that keeps no changes.
func logical(ctx context.Context, url string) error {
	level, err := value[string](ctx, url, "SHOW wal_level")
	if err == nil && level != "logical" {
		err = errors.New("wal_level is " + level)
	}
	return err
}
