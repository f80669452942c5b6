package fence

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseTokenRefusesSecondSpellings(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "0", "00", "01", "+1", "-1", " 1", "1 ", "1.0", "18446744073709551616", "x"} {
		if got, err := ParseToken(s); err == nil {
			t.Errorf("ParseToken(%q) = %d, want an error", s, got)
		}
	}
}

func TestTokenRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := Token(rapid.Uint64Min(1).Draw(t, "token"))
		got, err := ParseToken(want.String())
		if err != nil || got != want {
			t.Fatalf("ParseToken(%q) = %d, %v", want, got, err)
		}
	})
}

func TestJudgeIsATotalOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		own := Token(rapid.Uint64().Draw(t, "own"))
		seen := Token(rapid.Uint64().Draw(t, "seen"))
		got, back := Judge(own, seen), Judge(seen, own)
		switch {
		case own == seen && got != Same,
			own > seen && (got != Older || back != Newer),
			own < seen && (got != Newer || back != Older):
			t.Fatalf("Judge(%d, %d) = %s, reversed %s", own, seen, got, back)
		}
	})
}
