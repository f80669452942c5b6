package spec

import (
	"slices"
	"strings"

	"weir.dev/weir/pkg/config"
)

// MySQLSink writes into one database of a MySQL or MariaDB server.
type MySQLSink struct {
	URL      config.Secret `yaml:"url,required" doc:"mysql://user@host:port/. Keep the password out of the file: ${MYSQLURL} or ${file:/run/secrets/mysql}."`
	Database string        `yaml:"database,required" doc:"Database of the target tables. It is created when it is missing."`
	Table    string        `yaml:"name" default:"{table}" doc:"Name of a target table, made of {schema} and {table} of the source."`
	Existing Existing      `yaml:"existing" enum:"keep,truncate" doc:"What to do with a target table that is not empty at the first start. Left out: refuse."`
	Allow    []Allowance   `yaml:"allow" enum:"truncate,drop_column" doc:"Destructive changes of the source that the sink may follow."`
}

// Allows reports whether the sink may follow a destructive change.
func (c *MySQLSink) Allows(a Allowance) bool { return slices.Contains(c.Allow, a) }

// TableName returns the name of the target table of a source table.
func (c *MySQLSink) TableName(schema, table string) string {
	return strings.NewReplacer("{schema}", schema, "{table}", table).Replace(c.Table)
}

func (c *MySQLSink) secrets() []config.Secret { return []config.Secret{c.URL} }

func (c *MySQLSink) check(d *config.Decoder, n *config.Node) {
	checkMySQLURL(d, n.Get("url"), c.URL)
	checkTableName(d, n.Get("name"), c.Table)
}
