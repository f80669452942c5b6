package nats

import (
	"strconv"

	"weir.dev/weir/pkg/rows"
)

// appendFlat writes the columns of the new row, or of the old one for a delete, and one member about the change.
func appendFlat(dst []byte, e *event) []byte {
	b, op := e.batch, e.batch.Op(e.row)
	if op == rows.OpTruncate {
		dst = append(dst, '{')
	} else {
		dst = appendColumns(dst, e.table, b, e.row)
		dst = dst[:len(dst)-1]
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
	}
	dst = append(append(dst, e.table.meta...), `{"op":"`...)
	dst = append(dst, code(op)...)
	dst = quoted(append(dst, `","table":`...), string(b.Schema().Table()))
	dst = appendTime(append(dst, `,"ts_ms":`...), b, e.row, 1000)
	dst = strconv.AppendUint(append(dst, `,"seq":`...), b.Seq(e.row), 10)
	dst = appendAbsent(dst, b, e.row)
	return append(dst, "}}"...)
}
