package scan

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	signature = "PGCOPY\n\xff\r\n\x00"
	// headerSize is without the extension, whose length ends it.
	headerSize = len(signature) + 8
)

var trailer = []byte{0xff, 0xff}

// Copy runs a query and hands every row's tuple to row, until the last one or an error of row, which is returned as it is;
// the connection is then closed, as the server may have any number of rows left to send, and a request to cancel could
// meet the next statement instead. A tuple is valid only during the call. It returns the number of rows that row took.
func Copy(ctx context.Context, conn *pgconn.PgConn, query string, row func(tuple []byte) error) (int64, error) {
	r := receiver{row: row}
	_, err := conn.CopyTo(ctx, &r, "COPY ("+query+") TO STDOUT (FORMAT binary)")
	if err == nil && !r.ended {
		err = errors.New("copy: the rows have no end")
	}
	return r.rows, err
}

// receiver takes what the server sends: one message per row, the first with the header before it.
type receiver struct {
	row    func(tuple []byte) error
	rows   int64
	headed bool
	ended  bool
}

// Write implements io.Writer.
func (r *receiver) Write(message []byte) (int, error) {
	data := message
	if !r.headed {
		if len(data) < headerSize || string(data[:len(signature)]) != signature {
			return 0, errors.New("copy: not in binary form")
		}
		extension := int(binary.BigEndian.Uint32(data[headerSize-4:]))
		if extension > len(data)-headerSize {
			return 0, fmt.Errorf("copy: a header with an extension of %d bytes", extension)
		}
		r.headed, data = true, data[headerSize+extension:]
	}
	switch {
	case len(data) == 0:
		return len(message), nil
	case bytes.Equal(data, trailer):
		r.ended = true
		return len(message), nil
	}
	if err := r.row(data); err != nil {
		return 0, err
	}
	r.rows++
	return len(message), nil
}
