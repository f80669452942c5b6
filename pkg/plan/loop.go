package plan

import (
	"fmt"
	"strings"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// checkLoops refuses a sink that would write into tables which the job reads: each change would come back as a change.
// From the text of the spec it finds what is spelled alike; the sink looks again at the target itself.
func checkLoops(j *spec.Job) error {
	for _, s := range j.Sinks {
		for _, src := range j.Sources {
			table, ok := written(src.Config, s.Config)
			if ok {
				return fault.New(fault.SinkOwnSource, "sinks."+s.Name, fmt.Sprintf(
					"it writes into %s of the database of source %s, which captures %s", table, src.Name, table))
			}
		}
	}
	return nil
}

// written finds a table that the source captures and the sink writes.
func written(from spec.SourceConfig, to spec.SinkConfig) (table string, ok bool) {
	switch to := to.(type) {
	case *spec.PostgresSink:
		if from, ok := from.(*spec.PostgresSource); ok && sameDatabase(from.URL, to.URL) {
			return loop(from.Tables, to.Schema, to.TableName)
		}
	case *spec.MySQLSink:
		if from, ok := from.(*spec.MySQLSource); ok && sameServer(from.URL, to.URL) {
			return loop(from.Tables, to.Database, to.TableName)
		}
	}
	return "", false
}

// loop finds a table that is captured and written into a schema. Patterns with stars are tried with a table of that schema.
func loop(captured spec.Tables, into string, nameOf func(schema, table string) string) (table string, ok bool) {
	for _, p := range captured {
		schema, name, exact := p.Exact()
		shown := name
		if !exact {
			schema, name, shown = into, "any", "*"
		}
		if !p.Excludes() && captured.Match(schema, name) && captured.Match(into, nameOf(schema, name)) {
			return into + "." + nameOf(schema, shown), true
		}
	}
	return "", false
}

// sameDatabase reports whether two connection strings surely lead to one database: they are the same text, or name the
// same host, port and database.
func sameDatabase(a, b config.Secret) bool {
	if a.Raw() == b.Raw() {
		return true
	}
	x, ok := databaseOf(a)
	y, also := databaseOf(b)
	return ok && also && x == y
}

// sameServer is sameDatabase without the database, of which one MySQL server has many.
func sameServer(a, b config.Secret) bool {
	if a.Raw() == b.Raw() {
		return true
	}
	x, _, ok := addressOf(a, "3306")
	y, _, also := addressOf(b, "3306")
	return ok && also && x == y
}

// databaseOf is host, port and database of a connection URL. One that leaves the database out is not known here.
func databaseOf(s config.Secret) (database string, ok bool) {
	host, name, ok := addressOf(s, "5432")
	if !ok || name == "" {
		return "", false
	}
	return host + "/" + name, true
}

// addressOf is host and port, and the database, of a connection URL. User and password do not count and may be references; a
// URL whose other parts are references is not known here.
func addressOf(s config.Secret, port string) (host, name string, ok bool) {
	_, rest, ok := strings.Cut(s.Raw(), "://")
	if !ok {
		return "", "", false
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	rest, _, _ = strings.Cut(rest, "?")
	host, name, _ = strings.Cut(rest, "/")
	if strings.Contains(rest, "${") || host == "" {
		return "", "", false
	}
	if at := strings.LastIndexByte(host, ':'); at <= strings.LastIndexByte(host, ']') { // a colon in brackets is an address's
		host += ":" + port
	}
	return strings.ToLower(host), name, true
}
