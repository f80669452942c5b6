package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
)

// Fault gives an error of the server or of the connection its code. Errors that have one, and nil, stay as they are.
func (t *Target) Fault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok || errors.Is(err, fault.Bug) {
		return err
	}
	if my, ok := errors.AsType[*mysql.MyError](err); ok {
		return t.serverFault(my)
	}
	var netErr net.Error
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, mysql.ErrBadConn) || errors.As(err, &netErr) ||
		errors.Is(err, net.ErrClosed) {
		return fault.Wrap(err, fault.MYDisconnected, t.where, "the connection ended", "where", t.where)
	}
	return err
}

// serverFault classifies what the server said. Its text names objects and never a password.
func (t *Target) serverFault(e *mysql.MyError) error {
	why := fmt.Sprintf("%s (%d)", e.Message, e.Code)
	code := fault.MYRefused
	switch e.Code {
	case mysql.ER_SERVER_SHUTDOWN, mysql.ER_NORMAL_SHUTDOWN, 3032, // offline mode
		mysql.ER_CON_COUNT_ERROR, mysql.ER_TOO_MANY_USER_CONNECTIONS, // there is room when others leave
		mysql.ER_NEW_ABORTING_CONNECTION, 1927, 3169, 4031: // the server, or somebody at it, has ended the connection
		code = fault.MYDisconnected
	case mysql.ER_ACCESS_DENIED_ERROR, mysql.ER_DBACCESS_DENIED_ERROR, 3118, 1862: // account locked, password expired
		code = fault.MYAccess
	case mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, mysql.ER_TABLEACCESS_DENIED_ERROR, mysql.ER_COLUMNACCESS_DENIED_ERROR, 1370:
		code = fault.MYNoRight
	case mysql.ER_NO_SUCH_TABLE, mysql.ER_BAD_FIELD_ERROR, mysql.ER_TABLE_DEF_CHANGED, mysql.ER_BAD_DB_ERROR:
		code = fault.MYSchemaChanged
	case 4052: // MariaDB: another client has the server id
		code = fault.MYServerID
	case mysql.ER_MASTER_FATAL_ERROR_READING_BINLOG, 1789:
		switch {
		case strings.Contains(e.Message, "purged"), strings.Contains(e.Message, "Could not find first log"), e.Code == 1789,
			strings.Contains(e.Message, "not in the master's binlog"), strings.Contains(e.Message, "impossible position"):
			code = fault.MYPurged
		case strings.Contains(e.Message, "more GTIDs than"):
			code = fault.MYOtherHistory
		case strings.Contains(e.Message, "same server_uuid"), strings.Contains(e.Message, "server_id"):
			code = fault.MYServerID
		}
	}
	return fault.Wrap(e, code, t.where, why, "where", t.where, "user", t.user, "job", t.job)
}

// connectFault gives an error of a connection that is being opened its code.
func (t *Target) connectFault(err error) error {
	if err = t.Fault(err); fault.CodeOf(err) != fault.MYDisconnected {
		return err
	}
	return fault.Wrap(err, fault.MYCannotConnect, t.where, t.address+": "+reason(err), "where", t.where)
}

// reason is what the innermost error says that names what happened: the system's text, or the server's.
func reason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		return op.Err.Error()
	}
	if my, ok := errors.AsType[*mysql.MyError](err); ok {
		return fmt.Sprintf("%s (%d)", my.Message, my.Code)
	}
	return "the connection ended before the server had answered"
}
