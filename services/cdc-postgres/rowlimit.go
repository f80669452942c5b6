package cdcpostgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// rowLimit bounds a row as the server sends it, or both rows of an update. A row is never in memory only once: its message,
// the batch, its encoded form and the parts of its claim check stand beside each other, together about six times its size.
const rowLimit = 256 << 20

// rowTooBig stops the job at a row, so that nothing behind it is delivered ahead of it. It names the row's table and how its
// key is called, never what is in it.
func rowTooBig(where, table string, key []string, size, limit int) error {
	known := "no key"
	if len(key) > 0 {
		known = "key " + strings.Join(key, ", ")
	}
	return fault.New(fault.SrcTooBig, where, fmt.Sprintf("table %s (%s) has a row of %d bytes, the limit is %d", table, known, size, limit),
		"table", table, "where", where)
}

// tooBig is rowTooBig for a change in the log.
func (r *reader) tooBig(t *table, size int) error {
	var key []string
	for _, i := range t.key {
		key = append(key, t.columns[i].Name)
	}
	return rowTooBig(r.where, string(t.id()), key, size, r.rowLimit)
}

// tooBig is rowTooBig for a row of a chunk.
func (c *copier) tooBig(t *capturedTable, size int) error {
	return rowTooBig(c.target.Where(), t.String(), t.keyNames(), size, rowLimit)
}

func (t *capturedTable) keyNames() []string {
	var names []string
	for _, k := range t.Key {
		names = append(names, k.Name)
	}
	return names
}

// beyondServer makes the fault of a row that the server itself cannot send. Other errors stay as they are.
func (c *copier) beyondServer(err error, t *capturedTable) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !pgrepl.TooBig(err) {
		return err
	}
	e := fault.New(fault.SrcTooBig, c.target.Where(), fmt.Sprintf("table %s has a row that the server cannot send: %s (SQLSTATE %s)", t, pg.Message, pg.Code),
		"table", t.String(), "where", c.target.Where())
	e.Err = pg
	return e
}
