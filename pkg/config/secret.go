package config

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const hidden = "***"

// Secret is a text that must not be seen: a connection string, a password. It may contain references, which are kept as
// written; only [Secret.Resolve] turns them into a value. Every way of printing it gives ***, the zero value nothing.
type Secret struct{ raw string }

// NewSecret makes a Secret from a text with or without references.
func NewSecret(raw string) Secret { return Secret{raw: raw} }

// Resolve returns the value, with references replaced. An error names the reference, never a value.
func (s Secret) Resolve(l Lookup) (string, error) { return resolve(s.raw, l) }

// Raw returns the text as written, which may be a literal secret. It is for storing a spec, never for showing it.
func (s Secret) Raw() string { return s.raw }

// Redacted returns the references as written and *** for everything else.
func (s Secret) Redacted() string { return redact(s.raw) }

// IsZero reports whether there is nothing.
func (s Secret) IsZero() bool { return s.raw == "" }

// Literals returns the parts of the text that are not references, joined, with the fallbacks of references. It is what a
// check for passwords in clear text has to look at.
func (s Secret) Literals() string {
	pieces, _ := split(s.raw)
	var out strings.Builder
	for _, p := range pieces {
		switch {
		case p.hasElse:
			out.WriteString(p.fallback)
		case p.isReference():
			out.WriteString(placeholder)
		default:
			out.WriteString(p.literal)
		}
	}
	return out.String()
}

// placeholder stands for a reference in [Secret.Literals]; no connection string contains it.
const placeholder = "\x00"

func (s Secret) shown() string {
	if s.raw == "" {
		return ""
	}
	return hidden
}

// String returns ***.
func (s Secret) String() string { return s.shown() }

// GoString returns ***.
func (s Secret) GoString() string { return s.shown() }

// Format writes *** for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.shown()) }

// MarshalText writes ***; encoding/json and YAML use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// LogValue returns ***.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown()) }

// DecodeNode reads a text and checks the form of its references, not their values.
func (s *Secret) DecodeNode(d *Decoder, n *Node) {
	if raw, ok := d.referenced(n); ok {
		s.raw = raw
	}
}

// SchemaNode describes a text.
func (Secret) SchemaNode() map[string]any { return map[string]any{"type": "string", "minLength": 1} }

// Text is a text that may contain references and is no secret: a path, a name.
type Text struct{ raw string }

// NewText makes a Text.
func NewText(raw string) Text { return Text{raw: raw} }

// Resolve returns the value, with references replaced.
func (t Text) Resolve(l Lookup) (string, error) { return resolve(t.raw, l) }

// String returns the text as written.
func (t Text) String() string { return t.raw }

// MarshalText writes the text as written.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.raw), nil }

// DecodeNode reads a text and checks the form of its references, not their values.
func (t *Text) DecodeNode(d *Decoder, n *Node) {
	if raw, ok := d.referenced(n); ok {
		t.raw = raw
	}
}

// SchemaNode describes a text.
func (Text) SchemaNode() map[string]any { return map[string]any{"type": "string", "minLength": 1} }

func (d *Decoder) referenced(n *Node) (string, bool) {
	switch {
	case n.Kind == List || n.Kind == Map:
		d.Problem(n, "this is %s; a text is expected", n.Kind)
		return "", false
	case n.Text == "":
		d.Problem(n, "the text is empty")
		return "", false
	}
	if _, ok := split(n.Text); !ok {
		d.Problem(n, "the reference is malformed; write ${VAR}, ${VAR:-default} or ${file:/path}, and $${ for a literal ${")
		return "", false
	}
	return n.Text, true
}
