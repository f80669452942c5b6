package nats

import (
	"strconv"
	"time"

	"weir.dev/weir/pkg/rows"
)

// appendCloudEvent writes a CloudEvent 1.0 in structured mode whose data is the envelope of [appendDebezium]. Source and id
// together are unique: the id is life, epoch and index, the same in every repetition.
func appendCloudEvent(dst []byte, e *event) []byte {
	b, t := e.batch, e.table
	dst = append(dst, `{"specversion":"1.0","id":"`...)
	dst = append(dst, e.life...)
	dst = append(append(dst, '-'), e.epoch.String()...)
	dst = strconv.AppendUint(append(dst, '-'), e.index, 10)
	dst = quoted(append(dst, `","source":`...), "/weir/"+e.job+"/"+t.source)
	dst = append(dst, `,"type":"dev.weir.change.`...)
	dst = append(dst, word(b.Op(e.row))...)
	dst = quoted(append(dst, `","subject":`...), string(b.Schema().Table()))
	if ts := b.Ts(e.row); ts != rows.NoTs {
		dst = append(dst, `,"time":"`...)
		dst = time.UnixMicro(ts).UTC().AppendFormat(dst, time.RFC3339Nano)
		dst = append(dst, '"')
	}
	dst = append(dst, `,"datacontenttype":"application/json","weirepoch":"`...)
	dst = append(dst, e.epoch.String()...)
	dst = strconv.AppendUint(append(dst, `","weirindex":"`...), e.index, 10)
	dst = strconv.AppendUint(append(dst, `","weirseq":"`...), b.Seq(e.row), 10)
	dst = append(dst, `","data":`...)
	dst = appendDebezium(dst, e)
	return append(dst, '}')
}

// word is the last part of an event's type.
func word(op rows.Op) string {
	switch op {
	case rows.OpRead, rows.OpInsert, rows.OpDelete, rows.OpTruncate:
		return op.String()
	case rows.OpUpdateBefore, rows.OpUpdateAfter:
		return "update"
	}
	return ""
}
