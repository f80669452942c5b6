package mysql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/transact"
)

// Numbers of errors that decide something, by the server's own names.
const (
	noSuchTable     = mysql.ER_NO_SUCH_TABLE
	duplicateEntry  = mysql.ER_DUP_ENTRY
	lockWaitTimeout = mysql.ER_LOCK_WAIT_TIMEOUT
	packetTooLarge  = mysql.ER_NET_PACKET_TOO_LARGE
	noSuchThread    = mysql.ER_NO_SUCH_THREAD
)

// Errors that concern the row and nothing else: of constraints, and of values that a column cannot hold.
var (
	constraintErrors = [...]uint16{
		1048, 1062, 1169, 1216, 1217, 1364, 1451, 1452, 1557, 1586, // null, duplicate, foreign key, no default
		3819, 4025, // check constraint of MySQL, of MariaDB
	}
	valueErrors = [...]uint16{
		1118, 1153, 1264, 1265, 1292, 1300, 1366, 1367, 1406, 1411, 1416, 1425, 1426, 1644, 1690, // range, form, length, a trigger's word
		3140, 3141, 3143, 3156, 3157, 3158, 3903, // JSON
		3037, 3516, 3617, 4078, // geometry
	}
)

// serverError is what the server said without its text, which may quote the row.
type serverError struct{ number uint16 }

func (e serverError) Error() string { return fmt.Sprintf("error %d of the server", e.number) }

// translate turns what the client returned into a classified error. It quotes names that a message holds; a message itself
// only where it cannot hold the value of a row (F4).
func translate(ctx context.Context, err error, at transact.Place) error {
	if err == nil {
		return nil
	}
	if known, ok := transact.Known(ctx, err); ok {
		return known
	}
	if my, ok := errors.AsType[*mysql.MyError](err); ok {
		return translateServer(my, at)
	}
	return at.Unreachable(err)
}

func translateServer(e *mysql.MyError, at transact.Place) error {
	number := fmt.Sprintf("error %d", e.Code)
	column, constraint := columnOf(e.Message), constraintOf(e.Message)
	names := []string{
		"where", at.Sink, "table", cmp.Or(at.Table, "<table>"), "column", cmp.Or(column, "<column>"),
		"constraint", cmp.Or(constraint, "<constraint>"), "job", cmp.Or(at.Job, "<job>"), "role", cmp.Or(at.Role, "<role>"),
		"setting", settingOf(e.Code), "value", cmp.Or(map[uint16]string{1665: "'ROW'"}[e.Code], "OFF"),
		"right", "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, CREATE TEMPORARY TABLES",
	}
	wrap := func(code fault.Code, why string) error {
		return fault.Wrap(serverError{e.Code}, code, at.String(), why, names...)
	}
	switch {
	case slices.Contains(constraintErrors[:], e.Code):
		return wrap(fault.SinkConstraint, fmt.Sprintf("constraint %s, column %s, %s",
			cmp.Or(constraint, "unnamed"), cmp.Or(column, "unnamed"), number))
	case slices.Contains(valueErrors[:], e.Code):
		return wrap(fault.SinkRow, fmt.Sprintf("column %s, %s", cmp.Or(column, "unnamed"), number))
	}
	switch e.Code {
	case 1045, 1698, 1862, 3118, 3159, 3955: // access denied, password expired, account locked, TLS required
		return wrap(fault.SinkWrongPassword, number)
	case 1044, 1142, 1143, 1227, 1370, 1410:
		return wrap(fault.SinkMissingRight, e.Message) // "CREATE command denied to user ..": names only
	case mysql.ER_BAD_DB_ERROR:
		return wrap(fault.SinkNoDatabase, number)
	case 1290, 1792, 1836, 3100: // --read-only, read-only transaction or mode, a group that refuses
		return wrap(fault.SinkReadOnly, number)
	case 1021, 1114, 3, 28:
		return wrap(fault.SinkDisk, number)
	case lockWaitTimeout:
		return wrap(fault.SinkBusy, "a lock was not free within "+lockTimeout.String())
	case 1213, 1317, 3024, 1969, 1040, 1203, 1226, 1041, 1037, 1038, 3572: // deadlock, ended, too long, connections, memory
		return wrap(fault.SinkBusy, number)
	case 1053, 1077, 1927, 4031, 3169, 1159, 1160, 1161: // shutdown, killed, idle for too long
		return wrap(fault.SinkUnreachable, number)
	case mysql.ER_KILL_DENIED_ERROR:
		return wrap(fault.SinkClaimRaced, "an older attempt's session belongs to another user")
	case noSuchTable:
		return wrap(fault.SinkMissingTable, e.Message) // "Table 'out.orders' doesn't exist"
	case 1054:
		return wrap(fault.SinkMissingColumn, e.Message) // "Unknown column 'note' in 'field list'"
	case 3750, 1173: // a table without a key, where the server wants one
		return wrap(fault.SinkSetting, "the server refuses tables without a primary key, "+number)
	case 1665: // rows of READ COMMITTED cannot be logged as statements
		return wrap(fault.SinkSetting, "binlog_format is STATEMENT, "+number)
	case 1059, 1071, 1074: // name, key or column too long
		return wrap(fault.SinkUnsupportedType, e.Message)
	}
	return fmt.Errorf("%s: %w", at, serverError{e.Code})
}

// settingOf is the setting that an error is about.
func settingOf(number uint16) string {
	switch number {
	case 1665:
		return "binlog_format"
	case 1173:
		return "innodb_force_primary_key"
	}
	return "sql_require_primary_key"
}

// columnOf is the column that a message names. It comes after any value.
func columnOf(message string) string {
	at := strings.LastIndex(strings.ToLower(message), "column ")
	if at < 0 {
		return ""
	}
	name := message[at+len("column "):]
	if name, _, _ = strings.Cut(name, " at row"); name == "" {
		return ""
	}
	if strings.HasPrefix(name, "`") { // MariaDB: `out`.`orders`.`amount`
		name = name[strings.LastIndex(strings.TrimSuffix(name, "`"), "`")+1:]
		return strings.TrimSuffix(name, "`")
	}
	if name, ok := strings.CutPrefix(name, "'"); ok {
		name, _, _ = strings.Cut(name, "'")
		return name
	}
	return ""
}

// constraintOf is the constraint or index that a message names.
func constraintOf(message string) string {
	for _, form := range [...][2]string{{"for key '", "'"}, {"Check constraint '", "'"}, {"CONSTRAINT `", "`"}} {
		if at := strings.LastIndex(message, form[0]); at >= 0 {
			name, _, _ := strings.Cut(message[at+len(form[0]):], form[1])
			return name
		}
	}
	return ""
}

// poisonous reports whether an error means that the target cannot take a row for a reason of the row itself.
func poisonous(err error) bool {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Class() == fault.Poison
	}
	my, ok := errors.AsType[*mysql.MyError](err)
	return ok && (slices.Contains(constraintErrors[:], my.Code) || slices.Contains(valueErrors[:], my.Code))
}

func hasNumber(err error, number uint16) bool {
	my, ok := errors.AsType[*mysql.MyError](err)
	return ok && my.Code == number
}
