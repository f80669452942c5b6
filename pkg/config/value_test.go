package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"60s": "1m", "1m30s": "1m30s", "200ms": "200ms", "2h0m0s": "2h", "1.5s": "1.5s", "0": "0s", "90m": "1h30m", "10m0s": "10m",
	} {
		d, ok := ParseDuration(text)
		if !ok || d.String() != want {
			t.Errorf("%s: %s, %v", text, d, ok)
		}
	}
	for _, text := range []string{"", "1", "-1s", "1 s", "1d", "s"} {
		if d, ok := ParseDuration(text); ok {
			t.Errorf("%q was read as %s", text, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "d"))
		if back, ok := ParseDuration(d.String()); !ok || back != d {
			t.Fatalf("%s became %s", d, back)
		}
	})
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0B": 0, "1B": 1, "64KiB": 64 << 10, "256MiB": 256 << 20, "1GiB": 1 << 30, "2 TiB": 2 << 40,
		"1KB": 1000, "1kb": 1000, "5MB": 5e6, "256mib": 256 << 20,
	} {
		if b, ok := ParseBytes(text); !ok || b != want {
			t.Errorf("%s: %d, %v", text, b, ok)
		}
	}
	for _, text := range []string{"", "1", "B", "MiB", "-1B", "1.5MiB", "9999999TiB", "1PiB", "1M"} {
		if b, ok := ParseBytes(text); ok {
			t.Errorf("%q was read as %s", text, b)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := Bytes(rapid.Int64Min(0).Draw(t, "b"))
		if back, ok := ParseBytes(b.String()); !ok || back != b {
			t.Fatalf("%s became %s", b, back)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"upsert", "changelog", "append"}
	for s, want := range map[string]string{
		"upset": "upsert", "UPSERT": "upsert", "uspert": "upsert", "change_log": "changelog", "apend": "append",
		"": "", "x": "", "delete": "", "merge": "",
	} {
		if got := Nearest(s, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", s, got, want)
		}
	}
}
