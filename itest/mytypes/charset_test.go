package mytypes

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
)

// unread are the character sets whose columns are refused.
var unread = []string{
	"armscii8", "dec8", "geostd8", "hp8", "keybcs2", "macce", "swe7",
}

// TestCharsets reads every character that a character set of the server has, up to three bytes, and holds what is read
// against the server's own conversion.
func TestCharsets(t *testing.T) {
	for name, maria := range map[string]bool{"mysql": false, "mariadb": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := connect(t, startServer(t, maria))
			execute(t, conn, "SET SESSION character_set_results = 'binary'", "CREATE DATABASE c", "CREATE TABLE c.n (n int unsigned PRIMARY KEY)",
				"INSERT INTO c.n WITH RECURSIVE d(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM d WHERE n < 255) SELECT a.n * 256 + b.n FROM d a, d b")
			sets, err := conn.Execute("SELECT character_set_name, maxlen FROM information_schema.character_sets ORDER BY 1")
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range sets.Values {
				set, widest := string(row[0].AsString()), row[1].AsInt64()
				codec, err := mycodec.OfCatalog(mycodec.CatalogColumn{
					DataType: "varchar", ColumnType: "varchar(10)", OctetLength: 10 * uint64(widest), Charset: set,
				})
				if known := !slices.Contains(unread, set); known != (err == nil) {
					t.Errorf("%s: known %v, but %v", set, known, err)
				}
				if err == nil && set != "binary" {
					checkCharset(t, conn, set, widest, codec)
				}
			}
		})
	}
}

// wide are the character sets in which also the first letters take more than a byte.
var wide = map[string]bool{"ucs2": true, "utf16": true, "utf16le": true, "utf32": true}

// characters are SQL for the bytes of characters, made of a number of two bytes.
func characters(set string, widest int64) []string {
	point := "CONCAT(x'00%s', UNHEX(LPAD(HEX(n), 4, '0')))"
	switch set {
	case "utf8mb3", "ucs2":
		return []string{fmt.Sprintf("CONVERT(CAST(%s AS CHAR CHARACTER SET utf32) USING %s)", fmt.Sprintf(point, "00"), set)}
	case "utf8mb4", "utf16", "utf16le", "utf32":
		return []string{
			fmt.Sprintf("CONVERT(CAST(%s AS CHAR CHARACTER SET utf32) USING %s)", fmt.Sprintf(point, "00"), set),
			fmt.Sprintf("CONVERT(CAST(%s AS CHAR CHARACTER SET utf32) USING %s)", fmt.Sprintf(point, "01"), set),
			fmt.Sprintf("CONVERT(CAST(%s AS CHAR CHARACTER SET utf32) USING %s)", fmt.Sprintf(point, "10"), set),
		}
	case "gb18030":
		return []string{"IF(n < 256, UNHEX(LPAD(HEX(n), 2, '0')), NULL)", "UNHEX(LPAD(HEX(n), 4, '0'))", "CONCAT(UNHEX(LPAD(HEX(n), 4, '0')), x'8130')"}
	}
	forms := []string{"IF(n < 256, UNHEX(LPAD(HEX(n), 2, '0')), NULL)"}
	if widest > 1 {
		forms = append(forms, "UNHEX(LPAD(HEX(n), 4, '0'))")
	}
	if widest > 2 {
		forms = append(forms, "CONCAT(x'8f', UNHEX(LPAD(HEX(n), 4, '0')))")
	}
	return forms
}

func checkCharset(t *testing.T, conn *client.Conn, set string, widest int64, codec mycodec.Codec) {
	t.Helper()
	b, decoders := bound(t, []rows.Column{{Name: "c", Type: codec.Type(), Source: codec.SourceType(), Nullable: true}}, []mycodec.Codec{codec})
	decode := decoders[0]
	count, wrong := 0, newDifferences(set)
	for _, form := range characters(set, widest) {
		r, err := conn.Execute(fmt.Sprintf("SELECT CAST(s AS BINARY), CAST(CONVERT(s USING utf8mb4) AS BINARY) FROM "+
			"(SELECT CONVERT(CAST(%s AS BINARY) USING %s) s FROM c.n) d WHERE s IS NOT NULL", form, set))
		if err != nil {
			t.Errorf("%s: %v", set, err)
			return
		}
		for _, row := range r.Values {
			cell, want := row[0].AsString(), string(row[1].AsString())
			is, size := utf8.DecodeRuneInString(want)
			if len(cell) > 1 && cell[0] < utf8.RuneSelf && !wide[set] {
				continue // more than a character
			}
			if size != len(want) || is == utf8.RuneError || (is == '?' && len(cell) > 0 && cell[len(cell)-1] != '?') {
				continue // no character, or one that the server cannot convert
			}
			count++
			got := ""
			if err := decode(cell); err != nil {
				got = err.Error()
				b.Null(0)
			}
			b.EndRow(rows.Meta{Op: rows.OpRead, Ts: rows.NoTs})
			batch, err := b.Flush()
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := batch.AppendText(nil, 0, 0); ok {
				got = string(text)
			}
			if got != want {
				wrong.add(cell, is)
			}
		}
	}
	if text := wrong.String(); text != "" && *update {
		appendExceptions(t, text)
	} else if count < 120 || text != "" {
		t.Errorf("%s: of %d characters these are read otherwise than the server reads them:\n%s", set, count, text)
	}
}

// differences are lines of a file of exceptions.
type differences struct {
	set      string
	first    []byte
	last     []byte
	from, to rune
	lines    strings.Builder
}

func newDifferences(set string) *differences { return &differences{set: set} }

// add takes the next character; those of consecutive bytes that are consecutive characters share a line.
func (d *differences) add(cell []byte, is rune) {
	end := len(cell) - 1
	if len(d.last) == len(cell) && bytes.Equal(d.last[:end], cell[:end]) && d.last[end]+1 == cell[end] && d.to+1 == is {
		d.last, d.to = cell, is
		return
	}
	d.flush()
	d.first, d.last, d.from, d.to = cell, cell, is, is
}

func (d *differences) flush() {
	if d.first != nil {
		fmt.Fprintf(&d.lines, "%s %x %x %d\n", d.set, d.first, d.from, d.to-d.from+1)
	}
	d.first = nil
}

func (d *differences) String() string {
	d.flush()
	return d.lines.String()
}

// appendExceptions writes to the file that the decoders hold; building anew makes them heed it.
func appendExceptions(t *testing.T, text string) {
	t.Helper()
	f, err := os.OpenFile("../../pkg/mycodec/exceptions.txt", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
