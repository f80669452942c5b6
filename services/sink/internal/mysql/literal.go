package mysql

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"regexp"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/core"
)

// cell appends one value as a literal. ok is false when the column's type has no such value; then NULL was written.
type cell func(dst []byte, row int) (out []byte, ok bool)

const (
	null      = "NULL"
	usPerDay  = 86_400_000_000
	spanLimit = (838*3600 + 59*60 + 59) * 1_000_000 // of TIME
)

// The days of 0001-01-01 and 9999-12-31, the first and the last that DATE and DATETIME have.
var (
	firstDay = rows.DaysOf(1, 1, 1)
	lastDay  = rows.DaysOf(9999, 12, 31)
)

// serverDate is a date, perhaps of no calendar, that MySQL has a form for.
var serverDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)?$`)

// bindCell makes the cell of a column of a batch, for a column of the given type at the target. A value that the type lacks is
// written to a column of text as text.
func bindCell(b *rows.Batch, col int, target string) cell {
	write := writerOf(b, col, target)
	column := b.Column(col)
	if !b.HasSpecial() {
		if column.NullN() == 0 {
			return write
		}
		return func(dst []byte, row int) ([]byte, bool) {
			if column.IsNull(row) {
				return append(dst, null...), true
			}
			return write(dst, row)
		}
	}
	kind := b.Schema().Column(col).Type.Kind
	asText := textual(target)
	return func(dst []byte, row int) ([]byte, bool) {
		if column.IsValid(row) {
			return write(dst, row)
		}
		special, ok := b.SpecialText(col, row)
		switch {
		case !ok:
			return append(dst, null...), true
		case asText:
			return appendText(dst, special), true
		case kind == rows.KindList:
			return appendText(dst, strconv.Quote(special)), true // a JSON string
		case (kind == rows.KindDate || kind == rows.KindTimestamp || kind == rows.KindTimestampTZ) && serverDate.MatchString(special):
			return appendText(dst, special), true
		}
		return append(dst, null...), false
	}
}

// writerOf resolves, once per batch and column, how values that are not null are written.
func writerOf(b *rows.Batch, col int, target string) cell {
	codec := b.Schema().Codec(col)
	kind := b.Schema().Column(col).Type.Kind
	asText := textual(target)
	switch a := b.Column(col).(type) {
	case *array.Boolean:
		return func(dst []byte, row int) ([]byte, bool) {
			if a.Value(row) {
				return append(dst, '1'), true
			}
			return append(dst, '0'), true
		}
	case *array.Float32:
		return func(dst []byte, row int) ([]byte, bool) { return appendFloat(dst, float64(a.Value(row)), 32, asText) }
	case *array.Float64:
		return func(dst []byte, row int) ([]byte, bool) { return appendFloat(dst, a.Value(row), 64, asText) }
	case *array.String:
		return func(dst []byte, row int) ([]byte, bool) { return appendText(dst, a.Value(row)), true }
	case *array.Binary:
		return func(dst []byte, row int) ([]byte, bool) { return appendBytes(dst, a.Value(row)), true }
	case *array.FixedSizeBinary:
		if base, _, _ := splitType(target); base == "binary" || base == "varbinary" {
			return func(dst []byte, row int) ([]byte, bool) {
				return append(hex.AppendEncode(append(dst, "x'"...), a.Value(row)), '\''), true
			}
		}
	case *array.Date32:
		return func(dst []byte, row int) ([]byte, bool) {
			days := int64(a.Value(row))
			if (days < firstDay || days > lastDay) && !asText {
				return append(dst, null...), false
			}
			return append(rows.AppendDate(append(dst, '\''), days), '\''), true
		}
	case *array.Timestamp:
		return func(dst []byte, row int) ([]byte, bool) {
			us := int64(a.Value(row))
			days := us / usPerDay
			if us%usPerDay < 0 {
				days--
			}
			if (days < firstDay || days > lastDay) && !asText {
				return append(dst, null...), false
			}
			return append(rows.AppendDateTime(append(dst, '\''), days, us-days*usPerDay, ' ', ""), '\''), true
		}
	case *array.Duration:
		return func(dst []byte, row int) ([]byte, bool) {
			if us := int64(a.Value(row)); (us > spanLimit || us < -spanLimit) && !asText {
				return append(dst, null...), false
			}
			return append(codec.AppendText(append(dst, '\''), a, row), '\''), true
		}
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16, *array.Uint32, *array.Uint64,
		*array.Decimal128, *array.Decimal256:
		if asText {
			break
		}
		return func(dst []byte, row int) ([]byte, bool) { return codec.AppendText(dst, b.Column(col), row), true }
	}
	var plain []byte
	return func(dst []byte, row int) ([]byte, bool) {
		if kind == rows.KindList {
			plain = codec.AppendJSON(plain[:0], b.Column(col), row)
		} else {
			plain = codec.AppendText(plain[:0], b.Column(col), row)
		}
		return appendText(dst, plain), true
	}
}

func appendFloat(dst []byte, v float64, bits int, asText bool) ([]byte, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		if !asText {
			return append(dst, null...), false
		}
		return append(strconv.AppendFloat(append(dst, '\''), v, 'g', -1, bits), '\''), true
	}
	// With an exponent it is a DOUBLE; without one it would be a DECIMAL first.
	return strconv.AppendFloat(dst, v, 'e', -1, bits), true
}

// appendText writes a literal of text, for a session without backslash escapes.
func appendText[T ~string | ~[]byte](dst []byte, v T) []byte {
	dst = append(dst, '\'')
	return append(appendQuoted(dst, v), '\'')
}

// appendBytes writes a literal of bytes, which have no character set.
func appendBytes(dst, v []byte) []byte {
	return append(appendQuoted(append(dst, "_binary'"...), v), '\'')
}

// appendQuoted writes v with every quote doubled.
func appendQuoted[T ~string | ~[]byte](dst []byte, v T) []byte {
	at := len(dst)
	dst = append(dst, v...)
	n := bytes.Count(dst[at:], []byte{'\''})
	if n == 0 {
		return dst
	}
	end := len(dst)
	dst = append(dst, make([]byte, n)...)
	for to := len(dst); n > 0; {
		end--
		to--
		if dst[to] = dst[end]; dst[end] == '\'' {
			to--
			dst[to] = '\''
			n--
		}
	}
	return dst
}

// changeColumns are the changelog's own columns with their types here.
var changeColumns = [...]struct{ name, sqlType string }{
	{core.ColOp, "smallint"},
	{core.ColSeq, "bigint unsigned"},
	{core.ColTs, "datetime(6)"},
	{core.ColTxn, "bigint unsigned"},
	{core.ColOrd, "bigint"},
	{core.ColEpoch, "bigint"},
	{core.ColAbsent, "json"},
}

// changeCells writes the changelog's columns of a row.
func changeCells(b *rows.Batch, epoch int64) cell {
	return func(dst []byte, row int) ([]byte, bool) {
		dst = append(strconv.AppendInt(dst, int64(b.Op(row)), 10), ',')
		dst = append(strconv.AppendUint(dst, b.Seq(row), 10), ',')
		if ts := b.Ts(row); ts == rows.NoTs {
			dst = append(dst, null...)
		} else {
			days := ts / usPerDay
			if ts%usPerDay < 0 {
				days--
			}
			dst = append(rows.AppendDateTime(append(dst, '\''), days, ts-days*usPerDay, ' ', ""), '\'')
		}
		dst = append(strconv.AppendUint(append(dst, ','), b.Txn(row), 10), ',')
		dst = append(strconv.AppendUint(dst, uint64(b.Ord(row)), 10), ',')
		dst = append(strconv.AppendInt(dst, epoch, 10), ',')
		absent := b.Absent(row)
		if len(absent) == 0 {
			return append(dst, null...), true
		}
		names := []byte{'['}
		for n, i := range absent {
			if n > 0 {
				names = append(names, ',')
			}
			name, _ := json.Marshal(b.Schema().Column(int(i)).Name) // a text
			names = append(names, name...)
		}
		return appendText(dst, append(names, ']')), true
	}
}
