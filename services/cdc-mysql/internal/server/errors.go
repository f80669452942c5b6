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
	code := fault.MYDisconnected // of which the next attempt knows more
	switch e.Code {
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
