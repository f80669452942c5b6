package core

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/cdc"
)

// Integers, uuids, bytes and text in a binary collation are ordered by their cells as the server orders the values.
func TestKeyCellsOrder(t *testing.T) {
	t.Parallel()
	cell := func(t *rapid.T, f KeyForm, text string) []byte {
		c, err := f.Cell(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	uuid := func(b []byte) string { return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]) }
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		if got := bytes.Compare(cell(t, KeyInt, strconv.FormatInt(a, 10)), cell(t, KeyInt, strconv.FormatInt(b, 10))); (got < 0) != (a < b) || (got == 0) != (a == b) {
			t.Fatalf("%d against %d: %d", a, b, got)
		}
		x, y := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "x"), rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "y")
		if got := bytes.Compare(cell(t, KeyUUID, uuid(x)), cell(t, KeyUUID, uuid(y))); got != bytes.Compare(x, y) {
			t.Fatalf("%x against %x: %d", x, y, got)
		}
		if got := cell(t, KeyBytes, `\x`+hex.EncodeToString(x)); !bytes.Equal(got, x) {
			t.Fatalf("%x is cell %x", x, got)
		}
	})
}

// What Cell makes of a value, Text turns into a value again that has the same cell.
func TestKeyCellsReadBack(t *testing.T) {
	t.Parallel()
	for form, texts := range map[KeyForm][]string{
		KeyInt:    {"0", "-1", "9223372036854775807", "-9223372036854775808", "4294967295"},
		KeyUUID:   {"00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		KeyBytes:  {`\x`, `\x00ff`},
		KeyBool:   {"t", "f"},
		KeyText:   {"", "it's"},
		KeyServer: {"", "12.50", "größer"},
	} {
		for _, text := range texts {
			cell, err := form.Cell(nil, []byte(text))
			if err != nil {
				t.Errorf("%s %q: %v", form, text, err)
				continue
			}
			back, err := form.Text(cell)
			if err != nil {
				t.Errorf("%s %q: %v", form, text, err)
				continue
			}
			if form == KeyUUID { // the server takes it without hyphens
				text = string(bytes.ReplaceAll([]byte(text), []byte("-"), nil))
			}
			if string(back) != text {
				t.Errorf("%s %q comes back as %q", form, text, back)
			}
		}
	}
}

func TestKeyCellsRefuse(t *testing.T) {
	t.Parallel()
	for form, text := range map[KeyForm]string{
		KeyInt: "1.0", KeyUUID: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", KeyBytes: "abc", KeyBool: "true", "other": "x",
	} {
		if c, err := form.Cell(nil, []byte(text)); err == nil {
			t.Errorf("%s takes %q as %x", form, text, c)
		}
	}
	for form, cell := range map[KeyForm][]byte{KeyInt: {1}, KeyUUID: {1}, KeyBool: {2}, "other": nil} {
		if text, err := form.Text(cell); err == nil {
			t.Errorf("%s writes %x as %q", form, cell, text)
		}
	}
}

func TestKeyOrder(t *testing.T) {
	t.Parallel()
	if KeyOrder([]KeyForm{KeyInt, KeyServer}) != nil {
		t.Error("an order is known although only the server knows it")
	}
	if KeyOrder([]KeyForm{KeyInt, KeyText}) != (cdc.Bytewise{}) {
		t.Error("no order of bytes")
	}
	for oid, want := range map[uint32]KeyForm{23: KeyInt, 2950: KeyUUID, 1042: KeyServer, 1700: KeyServer, 25: KeyText} {
		if got := KeyFormOf(oid, true); got != want {
			t.Errorf("type %d has form %s, want %s", oid, got, want)
		}
	}
	if got := KeyFormOf(25, false); got != KeyServer {
		t.Errorf("text in a collation of its own has form %s", got)
	}
}
