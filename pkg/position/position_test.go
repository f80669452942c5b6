package position

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"
)

func TestLSNRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := LSN(rapid.Uint64().Draw(t, "lsn"))
		got, err := ParseLSN(want.String())
		if err != nil || got != want {
			t.Fatalf("ParseLSN(%q) = %v, %v", want, got, err)
		}
	})
}

func TestParseLSNRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "/", "1", "1/", "/1", "1/2/3", "G/1", "1/100000000", "-1/2"} {
		if got, err := ParseLSN(s); err == nil {
			t.Errorf("ParseLSN(%q) = %s, want an error", s, got)
		}
	}
}

func TestPositionIsCopiedAndPrintedInOrder(t *testing.T) {
	t.Parallel()
	f := map[string]string{"lsn": "0/10", "end": "0/8"}
	p := New(PostgresLSN, f)
	f["lsn"] = "0/20"
	if got, want := p.String(), "POSTGRES_LSN:end=0/8,lsn=0/10"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	if p.Equal(New(Generator, p.Fields)) {
		t.Error("positions of two families are equal")
	}
}

func lsn(l LSN) Position { return New(PostgresLSN, map[string]string{"lsn": l.String()}) }

func TestCompareFollowsTheLog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := LSN(rapid.Uint64().Draw(t, "a")), LSN(rapid.Uint64().Draw(t, "b"))
		order, ok := Compare(lsn(a), lsn(b))
		if want := cmp.Compare(a, b); !ok || order != want {
			t.Fatalf("Compare(%s, %s) = %d, %t, want %d", a, b, order, ok, want)
		}
	})
}

func TestCompareRefusesWhatDoesNotCompare(t *testing.T) {
	t.Parallel()
	next := func(s string) Position { return New(Generator, map[string]string{"next": s}) }
	if order, ok := Compare(next("9"), next("10")); !ok || order >= 0 {
		t.Errorf("9 against 10: %d, %t; they are numbers, not text", order, ok)
	}
	newer := lsn(1)
	newer.Version = 2
	for name, pair := range map[string][2]Position{
		"two families":    {lsn(1), next("1")},
		"two versions":    {lsn(1), newer},
		"a missing field": {lsn(1), New(PostgresLSN, nil)},
		"not a number":    {next("1"), next("x")},
		"none":            {Position{}, Position{}},
	} {
		if order, ok := Compare(pair[0], pair[1]); ok {
			t.Errorf("%s compare: %d", name, order)
		}
	}
}
