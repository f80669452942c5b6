package core

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/position"
)

func TestMarkContains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		snapshot string
		xid      uint32
		want     bool
	}{
		"below xmin":                            {"100:110:102,105", 99, true},
		"xmin itself is running":                {"100:110:100,105", 100, false},
		"between, ended":                        {"100:110:102,105", 103, true},
		"between, running or prepared":          {"100:110:102,105", 105, false},
		"xmax itself":                           {"100:110:", 110, false},
		"above":                                 {"100:110:", 500, false},
		"nothing is running":                    {"110:110:", 109, true},
		"second epoch":                          {"4294967396:4294967406:", 99, true},
		"second epoch, running":                 {"4294967396:4294967406:4294967400", 104, false},
		"from before the wire id began anew":    {"4294967306:4294967310:", 4294967290, true},
		"from behind the wire id began anew":    {"4294967290:4294967295:", 5, false},
		"running, from before it began anew":    {"4294967294:4294967310:4294967294", 4294967294, false},
		"a distance of almost half the circle":  {"2147483749:2147483749:", 102, true},
		"behind by almost half the circle":      {"100:100:", 2147483747, false},
		"the first epoch does not go below nil": {"5:5:", 4, true},
	} {
		m, err := NewMark(c.snapshot, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := m.Contains(c.xid); got != c.want {
			t.Errorf("%s: %s contains %d: %t", name, c.snapshot, c.xid, got)
		}
	}
}

// The wire id of any transaction near a snapshot is widened to the transaction it stands for.
func TestMarkWidens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		xmax := rapid.Uint64Range(1<<31, 1<<40).Draw(t, "xmax")
		full := rapid.Uint64Range(xmax-1<<31+1, xmax+1<<31-1).Draw(t, "xid")
		m := Mark{Xmin: xmax, Xmax: xmax}
		if got := m.Contains(uint32(full)); got != (full < xmax) {
			t.Fatalf("a snapshot up to %d contains %d: %t", xmax, full, got)
		}
	})
}

func TestMarkReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		xmin := rapid.Uint64Range(3, 1<<40).Draw(t, "xmin")
		width := rapid.Uint64Range(0, 1000).Draw(t, "width")
		m := Mark{Xmin: xmin, Xmax: xmin + width, End: position.LSN(rapid.Uint64().Draw(t, "end"))}
		for x := xmin; x < m.Xmax; x += 1 + rapid.Uint64Range(0, 400).Draw(t, "gap") {
			m.Xip = append(m.Xip, x)
		}
		got, err := ParseMark(m.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got.Xmin != m.Xmin || got.Xmax != m.Xmax || got.End != m.End || !slices.Equal(got.Xip, m.Xip) {
			t.Fatalf("%s reads back as %s", m.Encode(), got.Encode())
		}
	})
}

func TestMarkRefusesOtherText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "1:2:3", "1:2@0/1", "x:2:@0/1", "2:1:@0/1", "1:9:5,4@0/1", "1:9:5,@0/1x", "1:9:,x@0/1"} {
		if m, err := ParseMark([]byte(s)); err == nil {
			t.Errorf("%q is taken for %s", s, m.Encode())
		}
	}
}
