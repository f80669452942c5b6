package pgcodec_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
)

// agree proves I1 to I3 for one text: read as text, written as a field, read as binary, it is the same cell with the same text.
func agree(tb testing.TB, t *rapid.T, c pgcodec.Codec, text string) {
	tb.Helper()
	fromText, err := decode(tb, c, pgcodec.Text, []byte(text))
	if err != nil {
		t.Fatalf("%s %q: %v", c.SourceType(), text, err)
	}
	field, err := pgcodec.BindField(fromText, 0)(nil, 0)
	if err != nil {
		t.Fatalf("%s %q: %v", c.SourceType(), text, err)
	}
	fromBinary, err := decode(tb, c, pgcodec.Binary, field[4:])
	if err != nil {
		t.Fatalf("%s %q as %x: %v", c.SourceType(), text, field[4:], err)
	}
	if a, b := fromText.AppendRowJSON(nil, 0), fromBinary.AppendRowJSON(nil, 0); string(a) != string(b) {
		t.Fatalf("%s %q: %s from text, %s from binary", c.SourceType(), text, a, b)
	}
	for _, b := range []*rows.Batch{fromText, fromBinary} {
		if got, ok := b.AppendText(nil, 0, 0); string(got) != text || !ok {
			t.Fatalf("%s %q came back as %q", c.SourceType(), text, got)
		}
	}
}

func TestNumericsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.IntRange(1, 80).Draw(rt, "precision")
		s := rapid.IntRange(0, p).Draw(rt, "scale")
		digits := rapid.StringOfN(rapid.RuneFrom([]rune("0000123456789")), p, p, -1).Draw(rt, "digits")
		whole := strings.TrimLeft(digits[:p-s], "0")
		if whole == "" {
			whole = "0"
		}
		text := whole
		if s > 0 {
			text += "." + digits[p-s:]
		}
		if strings.Trim(text, "0.") != "" && rapid.Bool().Draw(rt, "negative") {
			text = "-" + text
		}
		agree(t, rt, pgcodec.ForOID(1700, int32(p<<16|s)+4, ""), text)
		agree(t, rt, pgcodec.ForOID(1700, -1, ""), text)
	})
}

// A number that is too wide or too fine for the declared type is kept as text, not cut.
func TestNumericThatDoesNotFitIsSpecial(t *testing.T) {
	c := pgcodec.ForOID(1700, (5<<16|2)+4, "")
	for _, text := range []string{"1000.00", "-99999", "0.001", "1.234", "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"} {
		b, err := decode(t, c, pgcodec.Text, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := b.SpecialText(0, 0); !ok || got != text {
			t.Errorf("%q became %s", text, b.AppendRowJSON(nil, 0))
		}
		field, err := pgcodec.BindField(b, 0)(nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decode(t, c, pgcodec.Binary, field[4:])
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := back.SpecialText(0, 0); !ok || got != text {
			t.Errorf("binary %q became %s", text, back.AppendRowJSON(nil, 0))
		}
	}
	for _, text := range []string{"1.230000", "1.23"} { // finer than the type, but only in zeros
		b, err := decode(t, c, pgcodec.Text, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := b.AppendText(nil, 0, 0); string(got) != "1.23" {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestTemporalsAgree(t *testing.T) {
	date, clock := pgcodec.ForOID(1082, -1, ""), pgcodec.ForOID(1083, -1, "")
	plain, zoned := pgcodec.ForOID(1114, -1, ""), pgcodec.ForOID(1184, -1, "")
	rapid.Check(t, func(rt *rapid.T) {
		year := rapid.OneOf(rapid.Int64Range(-4711, 294_276), rapid.Int64Range(1900, 2100)).Draw(rt, "year")
		month, day := rapid.IntRange(1, 12).Draw(rt, "month"), rapid.IntRange(1, 28).Draw(rt, "day")
		us := rapid.OneOf(rapid.Int64Range(0, 86_399_999_999), rapid.Map(rapid.Int64Range(0, 86_399), func(s int64) int64 { return s * 1_000_000 })).Draw(rt, "us")
		shown, bc := year, ""
		if year <= 0 {
			shown, bc = 1-year, " BC"
		}
		ymd := fmt.Sprintf("%04d-%02d-%02d", shown, month, day)
		hms := fmt.Sprintf("%02d:%02d:%02d", us/3_600_000_000, us/60_000_000%60, us/1_000_000%60)
		if frac := us % 1_000_000; frac != 0 {
			hms += strings.TrimRight(fmt.Sprintf(".%06d", frac), "0")
		}
		agree(t, rt, date, ymd+bc)
		agree(t, rt, clock, hms)
		agree(t, rt, plain, ymd+" "+hms+bc)
		agree(t, rt, zoned, ymd+" "+hms+"+00"+bc)
	})
}

func TestScalarsAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.Int64().Draw(rt, "int")
		agree(t, rt, pgcodec.ForOID(20, -1, ""), fmt.Sprint(v))
		agree(t, rt, pgcodec.ForOID(23, -1, ""), fmt.Sprint(int32(v)))
		agree(t, rt, pgcodec.ForOID(21, -1, ""), fmt.Sprint(int16(v)))
		agree(t, rt, pgcodec.ForOID(25, -1, ""), rapid.String().Draw(rt, "text"))
		agree(t, rt, pgcodec.ForOID(17, -1, ""), fmt.Sprintf(`\x%x`, rapid.SliceOf(rapid.Byte()).Draw(rt, "bytes")))
		raw := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "uuid")
		agree(t, rt, pgcodec.ForOID(2950, -1, ""), fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]))
	})
}
