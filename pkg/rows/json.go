package rows

import (
	"slices"
	"strconv"
)

// AppendRowJSON writes row i as one JSON object on one line, without a line break:
//
//	{"op":"insert","table":"public.orders","seq":7,"ts":"2026-01-02T03:04:05Z","txn":90,"xid":12,"ord":0,"row":{...}}
//
// Absent columns are not in "row" but listed in "absent"; a special value is null in "row" and text in "special".
// "ts" is null when it is not known.
func (b *Batch) AppendRowJSON(dst []byte, i int) []byte {
	dst = append(dst, `{"op":"`...)
	dst = append(dst, b.Op(i).String()...)
	dst = append(dst, `","table":`...)
	dst = appendJSONString(dst, string(b.schema.table))
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, b.Seq(i), 10)
	dst = append(dst, `,"ts":`...)
	if ts := b.Ts(i); ts == NoTs {
		dst = append(dst, "null"...)
	} else {
		dst = append(appendMicros(append(dst, '"'), ts, 'T', "Z"), '"')
	}
	dst = append(dst, `,"txn":`...)
	dst = strconv.AppendUint(dst, b.Txn(i), 10)
	dst = append(dst, `,"xid":`...)
	dst = strconv.AppendUint(dst, uint64(b.Xid(i)), 10)
	dst = append(dst, `,"ord":`...)
	dst = strconv.AppendUint(dst, uint64(b.Ord(i)), 10)
	dst = append(dst, `,"row":`...)
	dst = b.AppendColumnsJSON(dst, i)
	dst = b.appendSpecialJSON(dst, i)
	dst = b.appendAbsentJSON(dst, i)
	return append(dst, '}')
}

// AppendColumnsJSON writes the object that AppendRowJSON puts under "row": the table's own columns only.
func (b *Batch) AppendColumnsJSON(dst []byte, i int) []byte {
	absent := b.Absent(i)
	dst = append(dst, '{')
	comma := false
	for c := range b.columns {
		if len(absent) > 0 && slices.Contains(absent, uint16(c)) {
			continue
		}
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst = appendJSONString(dst, b.schema.columns[c].Name)
		dst = append(dst, ':')
		dst = b.schema.codecs[c].AppendJSON(dst, b.columns[c], i)
	}
	return append(dst, '}')
}

func (b *Batch) appendSpecialJSON(dst []byte, i int) []byte {
	special := b.Special(i)
	if len(special) == 0 {
		return dst
	}
	dst = append(dst, `,"special":{`...)
	for k, s := range special {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, b.schema.columns[s.Column].Name)
		dst = append(dst, ':')
		dst = appendJSONString(dst, s.Text)
	}
	return append(dst, '}')
}

func (b *Batch) appendAbsentJSON(dst []byte, i int) []byte {
	absent := b.Absent(i)
	if len(absent) == 0 {
		return dst
	}
	dst = append(dst, `,"absent":[`...)
	for k, c := range absent {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, b.schema.columns[c].Name)
	}
	return append(dst, ']')
}
