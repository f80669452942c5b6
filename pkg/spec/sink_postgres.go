package spec

import (
	"slices"
	"strings"

	"weir.dev/weir/pkg/config"
)

// PostgresSink writes into one schema of a PostgreSQL database.
type PostgresSink struct {
	URL      config.Secret `yaml:"url,required" doc:"postgres://user@host:port/database. Keep the password out of the file: ${PGURL} or ${file:/run/secrets/pg}."`
	Schema   string        `yaml:"schema" default:"public" doc:"Schema of the target tables. It is created when it is missing."`
	Table    string        `yaml:"name" default:"{table}" doc:"Name of a target table, made of {schema} and {table} of the source."`
	Existing Existing      `yaml:"existing" enum:"keep,truncate" doc:"What to do with a target table that is not empty at the first start. Left out: refuse."`
	Allow    []Allowance   `yaml:"allow" enum:"truncate,drop_column" doc:"Destructive changes of the source that the sink may follow."`
}

// Existing says what happens to target tables that are not empty at the first start; the zero value refuses them.
type Existing string

// The ways to treat a target table that is not empty.
const (
	ExistingRefuse   Existing = ""
	ExistingKeep     Existing = "keep"
	ExistingTruncate Existing = "truncate"
)

// Allowance names a destructive change that a sink may follow.
type Allowance string

// The destructive changes.
const (
	// AllowTruncate lets a sink follow TRUNCATE.
	AllowTruncate Allowance = "truncate"
	// AllowDropColumn lets a sink drop columns that the source has dropped; schema_change: evolve does so without it.
	AllowDropColumn Allowance = "drop_column"
)

// Allows reports whether the sink may follow a destructive change.
func (c *PostgresSink) Allows(a Allowance) bool { return slices.Contains(c.Allow, a) }

// TableName returns the name of the target table of a source table.
func (c *PostgresSink) TableName(schema, table string) string {
	return strings.NewReplacer("{schema}", schema, "{table}", table).Replace(c.Table)
}

func (c *PostgresSink) secrets() []config.Secret { return []config.Secret{c.URL} }

func (c *PostgresSink) check(d *config.Decoder, n *config.Node) {
	checkPostgresURL(d, n.Get("url"), c.URL)
	checkTableName(d, n.Get("name"), c.Table)
}

// checkTableName reports a pattern of target tables that gives all of them one name, or has more to fill in than there is.
func checkTableName(d *config.Decoder, n *config.Node, pattern string) {
	if pattern != "" && !strings.Contains(pattern, "{table}") {
		d.Problem(n, `the name must contain {table}: "{schema}_{table}"`)
	}
	if rest := strings.NewReplacer("{schema}", "", "{table}", "").Replace(pattern); strings.ContainsAny(rest, "{}") {
		d.Problem(n, "only {schema} and {table} can be filled in")
	}
}
