package scan

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// closeTimeout bounds the farewell to a server whose rows nobody wants any more.
const closeTimeout = time.Second

// Query runs a statement and hands every row to row, until the last one or an error of row, which is returned as it is;
// the connection is then closed, as the server may have any number of rows left to send, and a request to cancel could
// meet the next statement instead. Params are in text form, nil is null; formats has one entry per column of the result.
// A cell is nil for null; cells and the bytes in them are valid only during the call. It returns the number of rows that
// row took.
func Query(ctx context.Context, conn *pgconn.PgConn, sql string, params [][]byte, formats []int16, row func(cells [][]byte) error) (int64, error) {
	result := conn.ExecParams(ctx, sql, params, nil, nil, formats)
	var n int64
	for result.NextRow() {
		if err := row(result.Values()); err != nil {
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			_ = conn.Close(closing) // err is what matters
			return n, err
		}
		n++
	}
	_, err := result.Close()
	return n, err
}
