package mycodec_test

import (
	"errors"
	"testing"

	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
)

// legacyText reads one cell.
func legacyText(t *testing.T, c mycodec.Codec, f mycodec.Format, cell string) (string, error) {
	t.Helper()
	s, err := rows.NewSchema("d.t", 1, mycodec.Origin, []rows.Column{{Name: "c", Type: c.Type(), Source: c.SourceType()}})
	if err != nil {
		t.Fatal(err)
	}
	decode, err := c.Decoder(rows.NewBuilder(s), 0, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := decode([]byte(cell)); err != nil {
		return "", err
	}
	return read(t, c, f, cell)[0], nil
}

// I2, I3: what the servers read otherwise than others do, between characters that all read alike; and what is no character.
func TestLegacyCharsets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, cell, want string }{
		{"sjis", "a\x81\x60b", "a〜b"},
		{"cp932", "\x93\xfa\x81\x60\xf0\x40", "日～\ue000"},
		{"sjis", "\xb1\x81\x5f", "ｱ\\"},
		{"ujis", "\xa1\xc1\x8e\xb1\xf5\xa1", "〜ｱ\ue000"},
		{"eucjpms", "\xf5\xa1x", "\ue000x"},
		{"big5", "\xa1\x45\xa4\xa4", "•中"},
		{"gb2312", "\xa1\xa4\xd6\xd0", "・中"},
		{"gbk", "\xd6\xd0", "中"},
		{"gb18030", "\xa1\x40\x84\x31\xa4\x37", "\ue4c6\ufffd"},
		{"latin2", "\x80\xb3", "\u0080ł"},
		{"greek", "\xa1\xd9", "ʽΩ"},
		{"cp866", "\xfc", "ⁿ"},
		{"koi8u", "\xae", "╝"},
		{"tis620", "\x80\xa1", "\u0080ก"},
		{"hebrew", "\xaf", "‾"},
		{"latin7", "\x9f", "\u009f"},
		{"latin1", "\x80\x81\xe9", "€\u0081é"},
		{"euckr", "\xc7\xd1", "한"},
		{"latin2", "", ""},
		{"sjis", "\x81", "-"},
		{"ascii", "\x80", "-"},
		{"ujis", "\x8f\xa1", "-"},
		{"gbk", "\x81", "-"},
		{"hebrew", "\xbf", "-"},
		{"utf16", "\xd8\x00\x00a", "-"},
		{"ucs2", "\x00", "-"},
		{"utf32", "\x00\x11\x00\x00", "-"},
		{"utf16le", "a\x00\x00\xdc", "-"},
	} {
		codec, err := mycodec.OfCatalog(mycodec.CatalogColumn{DataType: "text", ColumnType: "text", Charset: c.set})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []mycodec.Format{mycodec.Log, mycodec.Text} {
			got, err := legacyText(t, codec, f, c.cell)
			switch {
			case c.want == "-":
				if !errors.Is(err, mycodec.ErrCell) {
					t.Errorf("%s %x: %q, %v", c.set, c.cell, got, err)
				}
			case err != nil || got != c.want:
				t.Errorf("%s %x: %q, %v, want %q", c.set, c.cell, got, err, c.want)
			}
		}
	}
}
