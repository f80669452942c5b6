package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/transact"
)

// SQLSTATEs that decide something, by PostgreSQL's own names.
const (
	uniqueViolation      = "23505"
	exclusionViolation   = "23P01"
	lockNotAvailable     = "55P03"
	undefinedTable       = "42P01"
	insufficientRight    = "42501"
	readOnlyTransaction  = "25006"
	invalidPassword      = "28P01"
	invalidAuthorization = "28000"
	noDatabase           = "3D000"
	diskFull             = "53100"
	queryCanceled        = "57014"
	truncateReferenced   = "0A000"
)

// translate turns what pgx returned into a classified error. It quotes names that PostgreSQL reports apart from its
// messages; a message itself only where it cannot hold a row value (F4).
func translate(ctx context.Context, err error, at transact.Place) error {
	if err == nil {
		return nil
	}
	if known, ok := transact.Known(ctx, err); ok {
		return known
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return translateSQL(pg, err, at)
	}
	return at.Unreachable(err)
}

func translateSQL(pg *pgconn.PgError, err error, at transact.Place) error {
	if pg.TableName != "" && at.Table == "" {
		at.Table = pg.SchemaName + "." + pg.TableName
	}
	state := "SQLSTATE " + pg.Code
	names := []string{
		"where", at.Sink, "table", cmp.Or(at.Table, "<table>"),
		"column", cmp.Or(pg.ColumnName, "<column>"), "constraint", cmp.Or(pg.ConstraintName, "<constraint>"),
		"job", cmp.Or(at.Job, "<job>"), "role", cmp.Or(at.Role, "<role>"), "right", rightOf(pg.Message),
	}
	wrap := func(code fault.Code, why string) error { return fault.Wrap(err, code, at.String(), why, names...) }
	switch pg.Code {
	case invalidPassword, invalidAuthorization:
		return wrap(fault.SinkWrongPassword, state)
	case noDatabase:
		return wrap(fault.SinkNoDatabase, state)
	case insufficientRight:
		return wrap(fault.SinkMissingRight, pg.Message) // "permission denied for table orders": names only
	case readOnlyTransaction:
		return wrap(fault.SinkReadOnly, state)
	case diskFull:
		return wrap(fault.SinkDisk, state)
	case lockNotAvailable:
		return wrap(fault.SinkBusy, "a lock was not free within "+lockTimeout.String())
	case queryCanceled:
		return wrap(fault.SinkBusy, "a statement was cancelled or ran longer than "+statementTimeout.String())
	case undefinedTable:
		return wrap(fault.SinkMissingTable, pg.Message) // "relation "shop.orders" does not exist"
	case raisedByTrigger, limitExceeded: // a trigger's message may quote the row
		return wrap(fault.SinkRow, "refused with "+state)
	case truncateReferenced:
		return wrap(fault.SinkConstraint, pg.Message) // "cannot truncate a table referenced in a foreign key constraint"
	}
	switch pg.Code[:2] {
	case "08", "57": // connection exception, operator intervention: shutdown, crash, starting up
		return wrap(fault.SinkUnreachable, state)
	case "40", "53": // serialization failure, deadlock; connections or memory used up
		return wrap(fault.SinkBusy, state)
	case "44": // the check option of a view
		return wrap(fault.SinkConstraint, state)
	case "23": // integrity constraint violation; the message names constraint and column, the detail has the values
		return wrap(fault.SinkConstraint, fmt.Sprintf("constraint %s, column %s, %s",
			cmp.Or(pg.ConstraintName, "unnamed"), cmp.Or(pg.ColumnName, "unnamed"), state))
	case "22": // data exception; its message may quote the value
		return wrap(fault.SinkRow, fmt.Sprintf("column %s, %s", cmp.Or(pg.ColumnName, "unnamed"), state))
	case "42": // the statement does not fit the target's tables
		return wrap(fault.SinkMissingColumn, pg.Message)
	}
	return fmt.Errorf("%s: %s: %w", at, state, err)
}

// rightOf says what to grant when PostgreSQL says for what the permission is denied.
func rightOf(message string) string {
	for _, denied := range [...]struct{ prefix, right string }{
		{"permission denied for database ", "CREATE ON DATABASE "},
		{"permission denied for schema ", "USAGE, CREATE ON SCHEMA "},
		{"permission denied for table ", "SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON TABLE "},
	} {
		if name, ok := strings.CutPrefix(message, denied.prefix); ok {
			return denied.right + pgx.Identifier{name}.Sanitize()
		}
	}
	return "the right that is missing"
}

func hasState(err error, state string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == state
}
