package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is a size, written with a unit: 64KiB, 256MiB, 1GiB; KB, MB, GB are powers of ten.
type Bytes int64

var units = [...]struct {
	name string
	size int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"B", 1},
}

// ParseBytes reads a whole number and a unit of this package's list, in any letter case.
func ParseBytes(s string) (Bytes, bool) {
	for _, u := range units {
		if len(s) <= len(u.name) || !strings.EqualFold(s[len(s)-len(u.name):], u.name) {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(s[:len(s)-len(u.name)]), 10, 64)
		if err != nil || n < 0 || n > (1<<63-1)/u.size {
			return 0, false
		}
		return Bytes(n * u.size), true
	}
	return 0, false
}

// String returns the largest binary unit that divides the size.
func (b Bytes) String() string {
	for _, u := range units[:4] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Rough is the size for people, to a tenth of its unit: 1.5 GiB.
func (b Bytes) Rough() string {
	for _, u := range units[1:4] {
		if int64(b) >= u.size {
			return fmt.Sprintf("%.1f %s", float64(b)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", int64(b))
}

// MarshalText writes [Bytes.String].
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// DecodeNode reads the notation of [ParseBytes].
func (b *Bytes) DecodeNode(d *Decoder, n *Node) {
	v, ok := ParseBytes(n.Text)
	switch {
	case n.Kind == Int:
		d.Problem(n, "a size needs a unit: 64KiB, 256MiB, 1GiB")
	case n.Kind == List || n.Kind == Map || !ok:
		d.Problem(n, "this is not a size such as 64KiB, 256MiB, 1GiB")
	default:
		*b = v
	}
}

// SchemaNode describes the notation.
func (Bytes) SchemaNode() map[string]any {
	return map[string]any{"type": "string", "pattern": `^[0-9]+ ?([KMGT]i?)?B$`}
}
