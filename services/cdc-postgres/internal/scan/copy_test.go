package scan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The header may come with the first row or by itself, and with an extension.
func TestReceiver(t *testing.T) {
	t.Parallel()
	header := func(extension string) []byte {
		h := append([]byte(signature), 0, 0, 0, 0)
		return append(binary.BigEndian.AppendUint32(h, uint32(len(extension))), extension...)
	}
	one, two := AppendTuple(nil, [][]byte{[]byte("one")}), AppendTuple(nil, nil)
	for _, messages := range [][][]byte{
		{slices.Concat(header(""), one), two, trailer},
		{header(""), one, two, trailer},
		{slices.Concat(header("more"), one), two, trailer},
	} {
		var got [][]byte
		r := receiver{row: func(tuple []byte) error { got = append(got, tuple); return nil }}
		for _, m := range messages {
			if n, err := r.Write(m); n != len(m) || err != nil {
				t.Fatalf("wrote %d of %d bytes: %v", n, len(m), err)
			}
		}
		if !r.ended || r.rows != 2 || len(got) != 2 || !bytes.Equal(got[0], one) || !bytes.Equal(got[1], two) {
			t.Errorf("got %d rows, %q, ended %v", r.rows, got, r.ended)
		}
	}

	for _, first := range [][]byte{nil, []byte("1\tone\n"), header("")[:headerSize-1], header("more")[:headerSize+1]} {
		if _, err := (&receiver{}).Write(first); err == nil {
			t.Errorf("took %q", first)
		}
	}
	refused := errors.New("no more")
	r := receiver{headed: true, row: func([]byte) error { return refused }}
	if _, err := r.Write(one); !errors.Is(err, refused) || r.rows != 0 {
		t.Errorf("%d rows, %v", r.rows, err)
	}
}

// Cells and AppendTuple are inverse to each other, and no part of a tuple is one.
func TestTuples(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) []byte {
			if rapid.Bool().Draw(t, "null") {
				return nil
			}
			return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "cell")...)
		}), 0, 6).Draw(t, "cells")
		tuple := AppendTuple(nil, cells)
		got, err := Cells(nil, tuple)
		if err != nil || !slices.EqualFunc(got, cells, func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }) {
			t.Fatalf("cells are %q, want %q, %v", got, cells, err)
		}
		for n := range tuple {
			if _, err := Cells(nil, tuple[:n]); !errors.Is(err, errTorn) {
				t.Fatalf("%d of %d bytes: %v", n, len(tuple), err)
			}
		}
	})
}
