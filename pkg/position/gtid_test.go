package position

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const serverA, serverB = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "3e11fa47-71ca-11e1-9e33-c80aa9429563"

// model is a set of transactions as a map of their texts.
type model map[string]bool

func (m model) within(o model) bool {
	for g := range m {
		if !o[g] {
			return false
		}
	}
	return true
}

func drawSet(t *rapid.T, name string) (GTIDSet, model) {
	var s GTIDSet
	m := make(model)
	for range rapid.IntRange(0, 30).Draw(t, name) {
		text := rapid.SampledFrom([]string{serverA, serverB, serverA + ":tag"}).Draw(t, "origin")
		text = fmt.Sprintf("%s:%d", text, rapid.IntRange(1, 12).Draw(t, "n"))
		g, err := ParseGTID(text)
		if err != nil || g.String() != text {
			t.Fatalf("ParseGTID(%q) = %s, %v", text, g, err)
		}
		s.Add(g)
		m[text] = true
	}
	return s, m
}

func TestGTIDSetIsASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, in := drawSet(t, "a")
		b, also := drawSet(t, "b")
		read, err := ParseGTIDSet(a.String())
		if err != nil || !read.Equal(a) || read.String() != a.String() {
			t.Fatalf("ParseGTIDSet(%q) = %s, %v", a, read, err)
		}
		if got, want := a.ContainsSet(b), also.within(in); got != want {
			t.Fatalf("%s contains %s: %t", a, b, got)
		}
		for n := range uint64(14) {
			g := GTID{N: n}
			g.UUID, _ = parseUUID(serverA)
			if n > 0 && a.Contains(g) != in[g.String()] {
				t.Fatalf("%s contains %s: %t", a, g, a.Contains(g))
			}
		}
		rest, alone := a.Minus(b), 0
		for g := range in {
			if !also[g] {
				alone++
			}
		}
		if back := rest.Clone(); count(rest) != alone || !a.ContainsSet(rest) || !rest.Minus(b).Equal(rest) {
			t.Fatalf("%s without %s is %s", a, b, rest)
		} else if back.AddSet(b); !back.ContainsSet(a) {
			t.Fatalf("%s without %s is %s", a, b, rest)
		}
		both := a.Clone()
		both.AddSet(b)
		maps.Copy(in, also)
		if !both.ContainsSet(a) || !both.ContainsSet(b) || count(both) != len(in) {
			t.Fatalf("%s and %s together are %s", a, b, both)
		}
	})
}

func count(s GTIDSet) int {
	n := 0
	for _, spans := range s.of {
		for i, v := range spans {
			n += int(v.last - v.first + 1)
			if i > 0 && spans[i-1].last+1 >= v.first {
				return -1
			}
		}
	}
	return n
}

func TestGTIDSetReadsWhatServersWrite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "",
		strings.ToUpper(serverA) + ":1-5:7-8,\n" + serverB + ":3": serverA + ":1-5:7-8," + serverB + ":3",
		serverA + ":3-4:1-2:5":                         serverA + ":1-5",
		serverA + ":1-3:Tag_b:4-5:taga:1":              serverA + ":1-3:tag_b:4-5:taga:1",
		strings.ReplaceAll(serverA, "-", "") + ":9":    serverA + ":9",
		serverA + ":9223372036854775806":               serverA + ":9223372036854775806",
		serverA + ":tag:1, " + serverA + ":tag:2":      serverA + ":tag:1-2",
		serverA + ":1-10," + serverA + ":5-20:tag:1-2": serverA + ":1-20:tag:1-2",
	} {
		if got, err := ParseGTIDSet(text); err != nil || got.String() != want {
			t.Errorf("ParseGTIDSet(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{serverA, serverA + ":", serverA + ":0", serverA + ":5-4", "x:1", serverA + ":1-2-3", serverA + ":1:-", serverA[1:] + ":1"} {
		if got, err := ParseGTIDSet(text); err == nil {
			t.Errorf("ParseGTIDSet(%q) = %q, want an error", text, got)
		}
	}
}

func TestMariaGTIDSetIsTheLastOfEachDomain(t *testing.T) {
	t.Parallel()
	s, err := ParseMariaGTIDSet("1-7-10,0-1-5")
	if err != nil || s.String() != "0-1-5,1-7-10" {
		t.Fatalf("%s, %v", s, err)
	}
	for text, want := range map[string]bool{"0-1-5": true, "0-9-4": true, "0-1-6": false, "2-1-1": false} {
		g, err := ParseMariaGTID(text)
		if err != nil || s.Contains(g) != want {
			t.Errorf("contains %s: %t, %v", text, s.Contains(g), err)
		}
	}
	for _, text := range []string{"1", "1-2", "1-2-3-4", "a-1-1", "1-4294967296-1", "-1-1-1"} {
		if _, err := ParseMariaGTIDSet(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestBinlogPosOrdersByNumber(t *testing.T) {
	t.Parallel()
	ordered := []string{"binlog.000001:4", "binlog.000001:99", "binlog.000002:4", "binlog.999999:4", "binlog.1000000:4"}
	var read []BinlogPos
	for _, text := range ordered {
		p, err := ParseBinlogPos(text)
		if err != nil || p.String() != text {
			t.Fatalf("%q: %s, %v", text, p, err)
		}
		read = append(read, p)
	}
	if !slices.IsSortedFunc(read, func(a, b BinlogPos) int { n, _ := a.Compare(b); return n }) {
		t.Error("not in order")
	}
	if other, err := ParseBinlogPos("mysql-bin.000001:4"); err != nil {
		t.Error(err)
	} else if _, ok := other.Compare(read[0]); ok {
		t.Error("files of different names compare")
	}
	for _, text := range []string{"", "binlog:4", "binlog.000001", ".000001:4", "binlog.x:4", "binlog.1:-4"} {
		if p, err := ParseBinlogPos(text); err == nil {
			t.Errorf("%q was read as %s", text, p)
		}
	}
}

func TestCompareByContainment(t *testing.T) {
	t.Parallel()
	my := func(s string) Position { return New(MySQLGTID, map[string]string{FieldGTIDs: s, "open": "x"}) }
	maria := func(s string) Position { return New(MariaDBGTID, map[string]string{FieldGTIDs: s}) }
	file := func(s string) Position { return New(MySQLBinlog, map[string]string{FieldBinlog: s}) }
	for _, c := range []struct {
		a, b  Position
		order int
		ok    bool
	}{
		{my(serverA + ":1-5"), my(serverA + ":1-5"), 0, true},
		{my(serverA + ":1-5"), my(serverA + ":1-6"), -1, true},
		{my(serverA + ":1-5," + serverB + ":1"), my(serverA + ":2"), 1, true},
		{my(serverA + ":1"), my(serverB + ":1"), 0, false},
		{my(""), my(serverB + ":1"), -1, true},
		{my("x"), my(serverB + ":1"), 0, false},
		{maria("0-1-5"), maria("0-2-6"), -1, true},
		{maria("0-1-5,1-1-1"), maria("0-2-6"), 0, false},
		{file("b.000009:7"), file("b.000010:4"), -1, true},
		{file("b.000009:7"), file("c.000009:7"), 0, false},
		{file("b.000009:7"), my(""), 0, false},
	} {
		if order, ok := Compare(c.a, c.b); ok != c.ok || (ok && order != c.order) {
			t.Errorf("Compare(%s, %s) = %d, %t", c.a, c.b, order, ok)
		}
	}
}
