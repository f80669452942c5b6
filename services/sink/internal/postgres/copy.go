package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/core"
)

// changeColumns are the changelog's own columns with their types here.
var changeColumns = [...]struct{ name, sqlType string }{
	{core.ColOp, "smallint"},
	{core.ColSeq, "bigint"},
	{core.ColTs, "timestamp with time zone"},
	{core.ColTxn, "bigint"},
	{core.ColOrd, "bigint"},
	{core.ColEpoch, "bigint"},
	{core.ColAbsent, "text[]"},
}

// fieldsOf binds the writers of the columns `want` of a batch, then of the changelog's columns when epoch is not zero.
func fieldsOf(b *rows.Batch, want []int, epoch int64) []pgcodec.Field {
	fields := make([]pgcodec.Field, 0, len(want)+len(changeColumns))
	for _, i := range want {
		fields = append(fields, pgcodec.BindField(b, i))
	}
	if epoch == 0 {
		return fields
	}
	return append(fields, pgcodec.OpField(b), pgcodec.SeqField(b), pgcodec.TsField(b), pgcodec.TxnField(b),
		pgcodec.OrdField(b), pgcodec.Constant(epoch), absentField(b))
}

const (
	null    = "\xff\xff\xff\xff"
	oidText = 25
)

// absentField writes the names of the columns that a row lacks as text[], null when it has all.
func absentField(b *rows.Batch) pgcodec.Field {
	return func(dst []byte, row int) ([]byte, error) {
		absent := b.Absent(row)
		if len(absent) == 0 {
			return append(dst, null...), nil
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		for _, word := range [...]uint32{1, 0, oidText, uint32(len(absent)), 1} { // dimensions, nulls, type, length, from
			dst = binary.BigEndian.AppendUint32(dst, word)
		}
		for _, i := range absent {
			name := b.Schema().Column(int(i)).Name
			dst = append(binary.BigEndian.AppendUint32(dst, uint32(len(name))), name...)
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		return dst, nil
	}
}

// copyStream is a binary COPY of batches, encoded as it is read.
type copyStream struct {
	batches []*rows.Batch
	want    []int
	epoch   int64

	fields []pgcodec.Field // of batches[0]
	row    int
	buf    []byte
	at     int
	ended  bool
	// nulled counts values that PostgreSQL does not have and that were written as null.
	nulled uint64
}

const copyBuffer = 64 << 10

func newCopyStream(batches []*rows.Batch, want []int, epoch int64) *copyStream {
	return &copyStream{
		batches: batches, want: want, epoch: epoch,
		buf: append(make([]byte, 0, copyBuffer+4<<10), pgcodec.CopyHeader...),
	}
}

// Read implements io.Reader for pgconn.CopyFrom.
func (c *copyStream) Read(p []byte) (int, error) {
	if c.at == len(c.buf) {
		if c.ended {
			return 0, io.EOF
		}
		c.buf, c.at = c.buf[:0], 0
	}
	if c.at == 0 && !c.ended {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.buf[c.at:])
	c.at += n
	return n, nil
}

// fill encodes rows until the buffer is full or none are left.
func (c *copyStream) fill() error {
	for len(c.buf) < copyBuffer {
		if len(c.batches) == 0 {
			c.buf = append(c.buf, pgcodec.CopyTrailer...)
			c.ended = true
			return nil
		}
		b := c.batches[0]
		if c.fields == nil {
			c.fields = fieldsOf(b, c.want, c.epoch)
		}
		for ; c.row < b.NumRows() && len(c.buf) < copyBuffer; c.row++ {
			c.buf = pgcodec.AppendTuple(c.buf, len(c.fields))
			for _, f := range c.fields {
				var err error
				c.buf, err = f(c.buf, c.row)
				if errors.Is(err, pgcodec.ErrSpecial) {
					c.buf, err = append(c.buf, null...), nil
					c.nulled++
				}
				if err != nil {
					return err
				}
			}
		}
		if c.row == b.NumRows() {
			c.batches, c.fields, c.row = c.batches[1:], nil, 0
		}
	}
	return nil
}

// copyInto sends the columns `want` of batches into columns of a table, all names quoted already.
func (s *session) copyInto(ctx context.Context, table string, columns []string, stream *copyStream) error {
	sql := "COPY " + table + " (" + strings.Join(columns, ", ") + ") FROM STDIN (FORMAT binary)"
	_, err := s.PgConn().CopyFrom(ctx, stream, sql)
	return err
}
