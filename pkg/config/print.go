package config

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// JSON writes the node in one line, keys in the node's order. The same node always gives the same bytes.
func (n *Node) JSON() []byte { return n.appendJSON(nil) }

func (n *Node) appendJSON(b []byte) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	switch n.Kind {
	case Null:
		return append(b, "null"...)
	case Bool, Int, Float:
		return append(b, n.Text...)
	case List:
		b = append(b, '[')
		for i, item := range n.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i, e := range n.Entries {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, e.Key.Text), ':')
			b = e.Value.appendJSON(b)
		}
		return append(b, '}')
	case String:
	}
	return appendString(b, n.Text)
}

// appendString quotes without HTML escapes, which YAML would read differently from people.
func appendString(b []byte, s string) []byte {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(b, strings.TrimSuffix(out.String(), "\n")...)
}

// YAML writes the node in block style, for people.
func (n *Node) YAML() string {
	var b strings.Builder
	n.writeYAML(&b, "", false)
	return b.String()
}

var plain = regexp.MustCompile(`^[A-Za-z0-9/$][A-Za-z0-9_./{}$:@-]*$`)

func yamlWord(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off":
		return strconv.Quote(s)
	}
	if !plain.MatchString(s) || strings.HasSuffix(s, ":") || scalar(s, reflect.TypeFor[any]()).Kind != String {
		return string(appendString(nil, s))
	}
	return s
}

func (n *Node) writeYAML(b *strings.Builder, indent string, inline bool) {
	switch {
	case n == nil || n.Kind == Null:
		b.WriteString("null\n")
	case n.Kind == Map && len(n.Entries) == 0:
		b.WriteString("{}\n")
	case n.Kind == List && len(n.Items) == 0:
		b.WriteString("[]\n")
	case n.Kind == Map:
		for i, e := range n.Entries {
			if i > 0 || !inline {
				b.WriteString(indent)
			}
			b.WriteString(yamlWord(e.Key.Text) + ":")
			e.Value.writeChild(b, indent)
		}
	case n.Kind == List:
		for _, item := range n.Items {
			b.WriteString(indent + "- ")
			item.writeYAML(b, indent+"  ", true)
		}
	case n.Kind == String:
		b.WriteString(yamlWord(n.Text) + "\n")
	default:
		b.WriteString(n.Text + "\n")
	}
}

func (n *Node) writeChild(b *strings.Builder, indent string) {
	if n != nil && (n.Kind == Map && len(n.Entries) > 0 || n.Kind == List && len(n.Items) > 0) {
		b.WriteString("\n")
		n.writeYAML(b, indent+"  ", false)
		return
	}
	b.WriteString(" ")
	n.writeYAML(b, indent, true)
}
