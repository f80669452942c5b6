package spec

import (
	"strings"

	"weir.dev/weir/pkg/config"
)

// MySQLSource reads the binary log of one MySQL or MariaDB server.
type MySQLSource struct {
	URL      config.Secret `yaml:"url,required" doc:"mysql://user@host:port/. Keep the password out of the file: ${MYSQLURL} or ${file:/run/secrets/mysql}."`
	Tables   Tables        `yaml:"tables,required" doc:"Patterns database.table with * and, for exclusion, a leading !. Names match exactly."`
	Readers  int           `yaml:"readers" default:"1" min:"1" max:"64" doc:"Parallel readers of the snapshot; the log always has one."`
	Before   bool          `yaml:"before" doc:"Carry the row before the change."`
	ServerID int           `yaml:"server_id" min:"0" max:"4294967000" doc:"The first of the server ids under which the source reads the log: one more for each of its readers. With 0, the default, Weir chooses."`
	Columns  Columns       `yaml:"columns" doc:"Columns whose values never leave the source: not on the bus, not in logs, states or files."`
	Snapshot Snapshot      `yaml:"snapshot" doc:"The first copy of the tables."`
}

// Parallelism returns the number of readers.
func (c *MySQLSource) Parallelism() int { return c.Readers }

func (c *MySQLSource) secrets() []config.Secret { return []config.Secret{c.URL, c.Columns.Salt} }

func (c *MySQLSource) check(d *config.Decoder, n *config.Node) {
	checkMySQLURL(d, n.Get("url"), c.URL)
	c.Tables.check(d, n.Get("tables"))
	c.Columns.check(d, n.Get("columns"))
}

func checkMySQLURL(d *config.Decoder, n *config.Node, url config.Secret) {
	text := url.Literals()
	if text != "" && !strings.HasPrefix(text, reference) && !strings.HasPrefix(text, "mysql://") {
		d.Problem(n, "the url must begin with mysql:// or be a reference: ${MYSQLURL}")
	}
}
