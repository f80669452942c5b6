package position

import (
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
