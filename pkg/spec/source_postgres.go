package spec

import "weir.dev/weir/pkg/config"

// PostgresSource reads the log of one PostgreSQL database.
type PostgresSource struct {
	URL         config.Secret   `yaml:"url,required" doc:"postgres://user@host:port/database. Keep the password out of the file: ${PGURL} or ${file:/run/secrets/pg}."`
	Tables      Tables          `yaml:"tables,required" doc:"Patterns schema.table with * and, for exclusion, a leading !. Names match exactly."`
	Readers     int             `yaml:"readers" default:"1" min:"1" max:"64" doc:"Parallel readers of the snapshot; the log always has one."`
	Before      bool            `yaml:"before" doc:"Carry the row before the change; needs REPLICA IDENTITY FULL."`
	Snapshot    Snapshot        `yaml:"snapshot" doc:"The first copy of the tables."`
	Slot        string          `yaml:"slot" pattern:"[a-z0-9_]{1,63}" hint:"lower-case letters, digits and underscores, at most 63" doc:"An existing replication slot. Weir never drops it. Left out: Weir makes its own."`
	Publication string          `yaml:"publication" pattern:"[A-Za-z_][A-Za-z0-9_$]{0,62}" hint:"letters, digits and underscores, at most 63" doc:"An existing publication. Weir never drops it. Left out: Weir makes its own."`
	Heartbeat   config.Duration `yaml:"heartbeat" default:"10s" min:"1s" max:"1h" doc:"How often the position moves while the captured tables are quiet."`
	Columns     Columns         `yaml:"columns" doc:"Columns whose values never leave the source: not on the bus, not in logs, states or files."`
}

// SnapshotMode is whether the rows that exist before the log begins are copied.
type SnapshotMode string

// The snapshot modes.
const (
	SnapshotInitial SnapshotMode = "initial" // copy, then follow the log
	SnapshotNever   SnapshotMode = "never"   // follow the log from now on
	SnapshotOnly    SnapshotMode = "only"    // copy, then finish
)

// Snapshot says how the first copy is made.
type Snapshot struct {
	Mode      SnapshotMode `yaml:"mode" enum:"initial,never,only" default:"initial" doc:"initial: copy, then follow the log; never: follow the log from now on; only: copy, then finish."`
	ChunkRows int          `yaml:"chunk_rows" default:"8192" min:"1" max:"10000000" doc:"Rows read by one query of the copy."`
}

// Parallelism returns the number of readers.
func (c *PostgresSource) Parallelism() int { return c.Readers }

func (c *PostgresSource) secrets() []config.Secret { return []config.Secret{c.URL} }

func (c *PostgresSource) check(d *config.Decoder, n *config.Node) {
	checkPostgresURL(d, n.Get("url"), c.URL)
	c.Tables.check(d, n.Get("tables"))
	c.Columns.check(d, n.Get("columns"))
}
