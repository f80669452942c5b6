package nats

import (
	"slices"
	"strconv"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// noRow says that an event has no row before.
const noRow = -1

// event is one change. Its form depends on the row and its place in the epoch only, so that a repetition makes the same bytes.
type event struct {
	job, life, sink string
	prefix          string
	epoch           epoch.ID
	index           uint64
	table           *table
	batch           *rows.Batch
	// row is the change; before the row before an update, or noRow.
	row, before int
}

// encoder appends the body of an event.
type encoder func(dst []byte, e *event) []byte

func encoderOf(f spec.EventFormat) encoder {
	switch f {
	case spec.Flat:
		return appendFlat
	case spec.CloudEvents:
		return appendCloudEvent
	case spec.Debezium:
	}
	return appendDebezium
}

func contentTypeOf(f spec.EventFormat) string {
	if f == spec.CloudEvents {
		return "application/cloudevents+json"
	}
	return "application/json"
}

// code is the letter of the operation, as Debezium has it.
func code(op rows.Op) string {
	switch op {
	case rows.OpRead:
		return "r"
	case rows.OpInsert:
		return "c"
	case rows.OpUpdateBefore, rows.OpUpdateAfter:
		return "u"
	case rows.OpDelete:
		return "d"
	case rows.OpTruncate:
		return "t"
	}
	return ""
}

// appendColumns writes the columns of a row that the source has sent. A value that the column's type cannot hold (infinity,
// NaN of a decimal, 0000-00-00) is its text.
func appendColumns(dst []byte, t *table, b *rows.Batch, row int) []byte {
	dst = append(dst, '{')
	absent := b.Absent(row)
	first := true
	for i, name := range t.columns {
		if slices.Contains(absent, uint16(i)) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendCell(append(dst, name...), b, i, row)
	}
	return append(dst, '}')
}

func appendCell(dst []byte, b *rows.Batch, column, row int) []byte {
	if b.HasSpecial() {
		if text, ok := b.SpecialText(column, row); ok {
			return quoted(dst, text)
		}
	}
	return b.Schema().Codec(column).AppendJSON(dst, b.Column(column), row)
}

// appendAbsent writes the names of the columns that the source has not sent, as a member behind others; nothing when it has
// sent all.
func appendAbsent(dst []byte, b *rows.Batch, row int) []byte {
	absent := b.Absent(row)
	if len(absent) == 0 {
		return dst
	}
	dst = append(dst, `,"absent":[`...)
	for n, i := range absent {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = quoted(dst, b.Schema().Column(int(i)).Name)
	}
	return append(dst, ']')
}

// appendTime writes the time of the commit at the source in units of so many microseconds, or null.
func appendTime(dst []byte, b *rows.Batch, row int, unit int64) []byte {
	ts := b.Ts(row)
	if ts == rows.NoTs {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, ts/unit, 10)
}
