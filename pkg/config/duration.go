package config

import (
	"strings"
	"time"
)

// Duration is a span of time, written with a unit: 200ms, 1s, 1m30s, 2h.
type Duration time.Duration

// ParseDuration reads the notation of time.ParseDuration; negative spans are refused.
func ParseDuration(s string) (Duration, bool) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, false
	}
	return Duration(d), true
}

// Std returns the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the shortest notation: 1m instead of 1m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText writes [Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// DecodeNode reads the notation of [ParseDuration].
func (d *Duration) DecodeNode(dec *Decoder, n *Node) {
	v, ok := ParseDuration(n.Text)
	switch {
	case n.Kind == Int && n.Text != "0":
		dec.Problem(n, "a duration needs a unit: 500ms, 1s, 2m")
	case n.Kind == List || n.Kind == Map || !ok:
		dec.Problem(n, "this is not a duration such as 500ms, 1s, 2m")
	default:
		*d = v
	}
}

// SchemaNode describes the notation.
func (Duration) SchemaNode() map[string]any {
	return map[string]any{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
}
