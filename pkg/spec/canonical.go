package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"weir.dev/weir/pkg/config"
)

// Canonical returns the stored form: JSON in one line, defaults written out, references as written. [Parse] reads it
// back (S3). It holds literal secrets where the spec does.
func (j *Job) Canonical() []byte { return config.Encode(j, config.Keep).JSON() }

// Redacted returns the form for people: YAML with defaults written out, references as written and *** for everything
// else in a connection string.
func (j *Job) Redacted() string { return config.Encode(j, config.Redact).YAML() }

// RedactedJSON is [Job.Redacted] as JSON in one line.
func (j *Job) RedactedJSON() []byte { return config.Encode(j, config.Redact).JSON() }

// Digest names what the job asks for: the lower-case hex SHA-256 of the canonical form with sources and sinks sorted by
// name. The order and layout of the text, and the values of references, do not change it. A later version may add
// defaults, so compare with the digest of the stored form parsed again, not with a stored digest.
func (j *Job) Digest() string {
	sorted := *j
	sorted.Sources = slices.Clone(j.Sources)
	slices.SortFunc(sorted.Sources, func(a, b Source) int { return strings.Compare(a.Name, b.Name) })
	sorted.Sinks = slices.Clone(j.Sinks)
	slices.SortFunc(sorted.Sinks, func(a, b Sink) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.Sum256(sorted.Canonical())
	return hex.EncodeToString(sum[:])
}

// EncodeNode writes the sources in their order.
func (s Sources) EncodeNode(secrets config.Secrets) *config.Node {
	out := &config.Node{Kind: config.Map}
	for _, x := range s {
		n := &config.Node{Kind: config.Map}
		n.Put("type", config.Word(x.Type))
		n.Entries = append(n.Entries, config.Encode(x.Config, secrets).Entries...)
		out.Put(x.Name, n)
	}
	return out
}

// EncodeNode writes the sinks in their order.
func (s Sinks) EncodeNode(secrets config.Secrets) *config.Node {
	out := &config.Node{Kind: config.Map}
	for _, x := range s {
		n := &config.Node{Kind: config.Map}
		n.Put("type", config.Word(x.Type))
		n.Entries = append(n.Entries, config.EncodeParts(secrets, x, x.Config).Entries...)
		out.Put(x.Name, n)
	}
	return out
}
