package nats

import (
	"strconv"

	"weir.dev/weir/pkg/rows"
)

// appendDebezium writes the envelope of Debezium's change events, without its schema part.
func appendDebezium(dst []byte, e *event) []byte {
	b, op := e.batch, e.batch.Op(e.row)
	dst = append(dst, `{"before":`...)
	switch {
	case op == rows.OpDelete:
		dst = appendColumns(dst, e.table, b, e.row)
	case e.before != noRow:
		dst = appendColumns(dst, e.table, b, e.before)
	default:
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"after":`...)
	if op == rows.OpDelete || op == rows.OpTruncate {
		dst = append(dst, "null"...)
	} else {
		dst = appendColumns(dst, e.table, b, e.row)
	}
	dst = append(dst, `,"source":`...)
	dst = appendSource(dst, e)
	dst = append(dst, `,"op":"`...)
	dst = append(dst, code(op)...)
	dst = append(dst, `","ts_ms":`...)
	dst = appendTime(dst, b, e.row, 1000)
	return append(dst, '}')
}

// appendSource writes where a change comes from. The names are Debezium's where the meaning is.
func appendSource(dst []byte, e *event) []byte {
	b, t := e.batch, e.table
	dst = append(dst, `{"version":"weir/v1","connector":`...)
	connector := t.kind
	if connector == "postgres" {
		connector = "postgresql"
	}
	dst = quoted(dst, connector)
	dst = quoted(append(dst, `,"name":`...), e.prefix)
	dst = appendTime(append(dst, `,"ts_ms":`...), b, e.row, 1000)
	dst = appendTime(append(dst, `,"ts_us":`...), b, e.row, 1)
	dst = append(dst, `,"snapshot":"`...)
	dst = strconv.AppendBool(dst, b.Op(e.row) == rows.OpRead)
	dst = append(dst, '"')
	if t.kind == "mysql" {
		dst = quoted(append(dst, `,"db":`...), t.namespace)
	} else {
		dst = quoted(append(dst, `,"db":`...), t.source)
		dst = quoted(append(dst, `,"schema":`...), t.namespace)
	}
	dst = quoted(append(dst, `,"table":`...), t.name)
	dst = strconv.AppendUint(append(dst, `,"txId":`...), uint64(b.Xid(e.row)), 10)
	switch t.kind {
	case "postgres":
		dst = strconv.AppendUint(append(dst, `,"lsn":`...), b.Txn(e.row), 10)
	default:
		dst = strconv.AppendUint(append(dst, `,"txn":`...), b.Txn(e.row), 10)
	}
	dst = strconv.AppendUint(append(dst, `,"ord":`...), uint64(b.Ord(e.row)), 10)
	dst = strconv.AppendUint(append(dst, `,"seq":`...), b.Seq(e.row), 10)
	dst = appendAbsent(dst, b, e.row)
	return append(dst, '}')
}
