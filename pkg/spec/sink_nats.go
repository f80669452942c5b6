package spec

import (
	"slices"
	"strings"

	"weir.dev/weir/pkg/config"
)

// NATSSink delivers changes as events to the subjects of one JetStream stream, <prefix>.<source>.<schema>.<table>.
type NATSSink struct {
	URL      config.Secret `yaml:"url,required" doc:"nats://host:4222, or several servers of a cluster separated by commas; tls:// for TLS. It may be the server of the mesh. Keep the password out of the file: ${EVENTS_URL} or ${file:/run/secrets/nats}."`
	Creds    config.Text   `yaml:"creds" doc:"Path of a credentials file on the node of the committer."`
	Stream   string        `yaml:"stream,required" pattern:"[A-Za-z0-9_-]{1,64}" hint:"letters, digits, dashes and underscores, at most 64" doc:"The JetStream stream. Its subjects are <prefix>.> and nobody else writes into it."`
	Prefix   string        `yaml:"prefix,required" pattern:"[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*" hint:"tokens of letters, digits, dashes and underscores, joined by dots" doc:"Beginning of the subjects <prefix>.<source>.<schema>.<table>. With MySQL the schema is the database."`
	Format   EventFormat   `yaml:"format" enum:"debezium,flat,cloudevents" default:"debezium" doc:"What an event looks like: debezium: the envelope with before, after and source; flat: the columns of the new row; cloudevents: CloudEvents 1.0, structured, around the envelope."`
	Create   bool          `yaml:"create" default:"false" doc:"Create the stream when it is missing: file storage, no limits. Left out: a missing stream stops the job."`
	Replicas int           `yaml:"replicas" default:"0" min:"0" max:"5" doc:"Copies of a stream that is created. 0: one on a single server, three on a cluster."`
}

// EventFormat is the form of an event.
type EventFormat string

// The forms of events.
const (
	Debezium    EventFormat = "debezium"
	Flat        EventFormat = "flat"
	CloudEvents EventFormat = "cloudevents"
)

func (c *NATSSink) secrets() []config.Secret { return []config.Secret{c.URL} }

func (c *NATSSink) check(d *config.Decoder, n *config.Node) {
	if text := c.URL.Literals(); text != "" && !strings.HasPrefix(text, reference) &&
		!slices.ContainsFunc([]string{"nats://", "tls://", "ws://", "wss://"}, func(s string) bool { return strings.HasPrefix(text, s) }) {
		d.Problem(n.Get("url"), "the url must begin with nats:// or tls://, or be a reference: ${EVENTS_URL}")
	}
	if first, _, _ := strings.Cut(c.Prefix, "."); first == "weir" {
		d.Problem(n.Get("prefix"), "subjects that begin with weir are Weir's own")
	}
	if strings.HasPrefix(c.Stream, "WEIR_") || strings.HasPrefix(c.Stream, "KV_") || strings.HasPrefix(c.Stream, "OBJ_") {
		d.Problem(n.Get("stream"), "streams named WEIR_, KV_ and OBJ_ belong to Weir and to buckets")
	}
	if at := n.Get("writers"); at != nil && at.Text != "1" {
		d.Problem(at, "events keep the order of their table; a sink of type nats has one writer")
	}
	if at := n.Get("schema_change"); at != nil && at.Text != string(Lenient) {
		d.Problem(at, "an event has the columns that its row has; leave schema_change out")
	}
}
