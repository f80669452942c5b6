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
		to, ok := s.Config.(*spec.PostgresSink)
		if !ok {
			continue
		}
		for _, src := range j.Sources {
			from, ok := src.Config.(*spec.PostgresSource)
			if !ok || !sameDatabase(from.URL, to.URL) {
				continue
			}
			if table, ok := loop(from, to); ok {
				return fault.New(fault.SinkOwnSource, "sinks."+s.Name, fmt.Sprintf(
					"it writes into %s of the database of source %s, which captures %s", table, src.Name, table))
			}
		}
	}
	return nil
}

// loop finds a table that is captured and written. Patterns with stars are tried with a table of the sink's schema.
func loop(from *spec.PostgresSource, to *spec.PostgresSink) (table string, ok bool) {
	for _, p := range from.Tables {
		schema, name, exact := p.Exact()
		shown := name
		if !exact {
			schema, name, shown = to.Schema, "any", "*"
		}
		target := to.TableName(schema, name)
		if !p.Excludes() && from.Tables.Match(schema, name) && from.Tables.Match(to.Schema, target) {
			return to.Schema + "." + to.TableName(schema, shown), true
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

// databaseOf is host, port and database of a connection URL. User and password do not count and may be references; a URL
// whose other parts are references, or that leaves one out, is not known here.
func databaseOf(s config.Secret) (database string, ok bool) {
	_, rest, ok := strings.Cut(s.Raw(), "://")
	if !ok {
		return "", false
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	rest, _, _ = strings.Cut(rest, "?")
	host, name, _ := strings.Cut(rest, "/")
	if strings.Contains(rest, "${") || host == "" || name == "" {
		return "", false
	}
	if at := strings.LastIndexByte(host, ':'); at <= strings.LastIndexByte(host, ']') { // a colon in brackets is an address's
		host += ":5432"
	}
	return strings.ToLower(host) + "/" + name, true
}
