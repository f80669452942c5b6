package spec

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/config"
)

// IcebergSink writes Apache Iceberg tables of format version 2 and keeps their catalog in a SQL database, or commits to a REST
// catalog.
type IcebergSink struct {
	Warehouse config.Text   `yaml:"warehouse,required" doc:"Where the tables are: a directory, or s3://bucket/prefix. Writers and committer of the sink run on one node."`
	Catalog   config.Secret `yaml:"catalog" doc:"The catalog, which also has the ledger: sqlite:///path/to/catalog.db, postgres://user@host:port/database with the password outside the file: ${PGURL}, or the https:// address of a REST catalog. Left out: catalog.db in the directory of the warehouse."`
	REST      IcebergREST   `yaml:"rest" doc:"How a REST catalog is spoken to."`
	Namespace string        `yaml:"namespace" default:"weir" pattern:"[A-Za-z_][A-Za-z0-9_]{0,62}" hint:"letters, digits and underscores, at most 63" doc:"Namespace of the tables in the catalog."`
	Table     string        `yaml:"name" default:"{table}" doc:"Name of a table, made of {schema} and {table} of the source."`
	Changelog string        `yaml:"changelog" doc:"With mode upsert: name of a second table with every image, made of {schema} and {table}, which changes in the same commit."`
	Partition []string      `yaml:"partition" doc:"Partition of the changelog: hour, day or month of the commit time at the source, and bucket(n) of the key."`
	Buckets   int           `yaml:"buckets" default:"1" min:"1" max:"9999" doc:"Into how many parts new current tables are divided, by the hash of the (first column of the) key."`
	S3        IcebergS3     `yaml:"s3" doc:"How the object store of a warehouse s3:// is reached. Left out: the environment of the process decides, as for all AWS clients."`
	Allow     []Allowance   `yaml:"allow" enum:"truncate,drop_column" doc:"Destructive changes of the source that the sink may follow."`
}

// IcebergREST speaks to a REST catalog.
type IcebergREST struct {
	Warehouse  config.Text   `yaml:"warehouse" doc:"Name of the warehouse at the catalog, where it has several."`
	Token      config.Secret `yaml:"token" doc:"Bearer token: ${CATALOG_TOKEN} or ${file:/run/secrets/token}."`
	Credential config.Secret `yaml:"credential" doc:"client-id:client-secret, for which OAuth2 gives tokens: ${CATALOG_CREDENTIAL}."`
	OAuth      config.Text   `yaml:"oauth" doc:"URL that gives tokens. Left out: /v1/oauth/tokens of the catalog."`
	Scope      string        `yaml:"scope" doc:"Scope of the tokens. Left out: catalog."`
	Commit     RESTCommit    `yaml:"commit" enum:"transaction,ordered" doc:"transaction: an epoch changes in all its tables at once, by the multi-table commit of the catalog, which must offer it; ordered: table after table, changelogs first, the level is ORDERED. Left out: transaction."`
}

// RESTCommit says how an epoch gets into the tables of a REST catalog.
type RESTCommit string

// The ways to commit to a REST catalog; the empty one is CommitTransaction.
const (
	CommitTransaction RESTCommit = "transaction"
	CommitOrdered     RESTCommit = "ordered"
)

// IcebergS3 reaches an object store.
type IcebergS3 struct {
	Endpoint  config.Text   `yaml:"endpoint" doc:"URL of the object store, when it is not that of AWS."`
	Region    string        `yaml:"region" doc:"Region of the bucket."`
	AccessKey config.Secret `yaml:"access_key" doc:"Access key: ${S3_ACCESS_KEY} or ${file:/run/secrets/access}."`
	SecretKey config.Secret `yaml:"secret_key" doc:"Secret key: ${S3_SECRET_KEY} or ${file:/run/secrets/secret}."`
}

// PartitionOf is one part of a partition.
type PartitionOf struct {
	// Time is hour, day or month; empty for a bucket of the key.
	Time    string
	Buckets int
}

var bucketOf = regexp.MustCompile(`^bucket\(([1-9][0-9]{0,3})\)$`)

// Partitions are the parts of the changelog's partition; what cannot be read is left out, and reported when the spec is read.
func (c *IcebergSink) Partitions() []PartitionOf {
	var parts []PartitionOf
	for _, text := range c.Partition {
		if p, ok := partitionOf(text); ok {
			parts = append(parts, p)
		}
	}
	return parts
}

func partitionOf(text string) (PartitionOf, bool) {
	if slices.Contains([]string{"hour", "day", "month"}, text) {
		return PartitionOf{Time: text}, true
	}
	m := bucketOf.FindStringSubmatch(text)
	if m == nil {
		return PartitionOf{}, false
	}
	n, err := strconv.Atoi(m[1])
	return PartitionOf{Buckets: n}, err == nil
}

// Allows reports whether the sink may follow a destructive change.
func (c *IcebergSink) Allows(a Allowance) bool { return slices.Contains(c.Allow, a) }

// TableName returns the name of the table of a source table by a pattern: [IcebergSink.Table] or [IcebergSink.Changelog].
func (c *IcebergSink) TableName(pattern, schema, table string) string {
	return strings.NewReplacer("{schema}", schema, "{table}", table).Replace(pattern)
}

// Remote reports whether a warehouse is an object store.
func Remote(warehouse string) bool { return strings.HasPrefix(warehouse, "s3://") }

func (c *IcebergSink) secrets() []config.Secret {
	return []config.Secret{c.Catalog, c.REST.Token, c.REST.Credential, c.S3.AccessKey, c.S3.SecretKey}
}

func (c *IcebergSink) check(d *config.Decoder, n *config.Node) {
	checkTableName(d, n.Get("name"), c.Table)
	if at := n.Get("changelog"); at != nil {
		checkTableName(d, at, c.Changelog)
		mode := n.Get("mode")
		switch {
		case mode != nil && mode.Text == string(Changelog):
			d.Problem(at, "with mode changelog the table itself is the changelog")
		case c.Changelog == c.Table:
			d.Problem(at, "the changelog has the name of the other table")
		}
	}
	if at := n.Get("partition"); at != nil {
		mode := n.Get("mode")
		if c.Changelog == "" && (mode == nil || mode.Text != string(Changelog)) {
			d.Problem(at, "only a changelog has a partition; the other table can have buckets: 16")
		}
		seen := make(map[string]bool)
		for i, text := range c.Partition {
			p, ok := partitionOf(text)
			kind := "bucket"
			if p.Time != "" {
				kind = "time"
			}
			switch {
			case !ok:
				d.Problem(at.Items[i], "%s is not a partition; allowed: hour, day, month, bucket(1) to bucket(9999)", config.Quote(text))
			case seen[kind]:
				d.Problem(at.Items[i], "there is one part by time and one bucket at most")
			}
			seen[kind] = true
		}
	}
	if at, mode := n.Get("buckets"), n.Get("mode"); at != nil && c.Buckets > 1 && mode != nil && mode.Text == string(Changelog) {
		d.Problem(at, "with mode changelog there is no current table; a changelog has partition: [bucket(16)]")
	}
	if at := n.Get("dlq"); at != nil && at.Text == "true" {
		d.Problem(at, "Iceberg tables refuse no row by a constraint; there are no dead letters to keep")
	}
	if c.Catalog.IsZero() && Remote(c.Warehouse.String()) {
		d.Problem(n.Get("warehouse"), "an object store cannot hold the catalog; name a catalog: postgres://.., sqlite:///.. or https://..")
	}
	if c.REST != (IcebergREST{}) {
		c.REST.check(d, n.Get("rest"), c.Catalog)
	}
}

func (r IcebergREST) check(d *config.Decoder, n *config.Node, catalog config.Secret) {
	text := catalog.Literals()
	if !strings.HasPrefix(text, reference) && !strings.HasPrefix(text, "https://") && !strings.HasPrefix(text, "http://") {
		d.Problem(n, "the catalog is not a REST catalog; its address begins with https://")
	}
	if !r.Token.IsZero() && !r.Credential.IsZero() {
		d.Problem(n.Get("token"), "there is a token or a credential, not both")
	}
	if isLiteral(r.Token.Literals()) {
		d.Problem(n.Get("token"), "a token does not belong into the file; refer to it: ${CATALOG_TOKEN}")
	}
	_, secret, ok := strings.Cut(r.Credential.Literals(), ":")
	if !ok {
		secret = r.Credential.Literals()
	}
	if isLiteral(secret) {
		d.Problem(n.Get("credential"), "a secret does not belong into the file; refer to it: ${CATALOG_CREDENTIAL} or id:${SECRET}")
	}
}
