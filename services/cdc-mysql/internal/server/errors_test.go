package server

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
)

// Only what says that the server or the connection is gone lets a job wait without end.
func TestFaultOfServer(t *testing.T) {
	t.Parallel()
	target, err := NewTarget("mysql://weir:secret@db.example:3307/", "sources.db.url", "shop")
	if err != nil {
		t.Fatal(err)
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	said := func(code uint16, text string) error { return &mysql.MyError{Code: code, Message: text} }
	for _, tt := range []struct {
		err        error
		open, dial fault.Code // of a session that was open, and of one that is being opened
		why        string     // in the second
	}{
		{refused, fault.MYDisconnected, fault.MYCannotConnect, "db.example:3307: connection refused"},
		{io.ErrUnexpectedEOF, fault.MYDisconnected, fault.MYCannotConnect, "before the server had answered"},
		{said(mysql.ER_SERVER_SHUTDOWN, "Server shutdown in progress"), fault.MYDisconnected, fault.MYCannotConnect, "Server shutdown in progress (1053)"},
		{said(mysql.ER_CON_COUNT_ERROR, "Too many connections"), fault.MYDisconnected, fault.MYCannotConnect, "Too many connections (1040)"},
		{said(1927, "Connection was killed"), fault.MYDisconnected, fault.MYCannotConnect, "Connection was killed (1927)"},
		{said(mysql.ER_ACCESS_DENIED_ERROR, "Access denied"), fault.MYAccess, fault.MYAccess, "Access denied"},
		{said(mysql.ER_QUERY_INTERRUPTED, "Query execution was interrupted"), fault.MYRefused, fault.MYRefused, "(1317)"},
		{said(mysql.ER_DISK_FULL, "Disk full"), fault.MYRefused, fault.MYRefused, "Disk full (1021)"},
	} {
		if got := target.Fault(tt.err); fault.CodeOf(got) != tt.open {
			t.Errorf("%v in a session: %v, want %s", tt.err, got, tt.open)
		}
		got := target.connectFault(tt.err)
		if fault.CodeOf(got) != tt.dial || !strings.Contains(got.Error(), tt.why) || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v of a new session: %v, want %s with %q", tt.err, got, tt.dial, tt.why)
		}
		entry, _ := fault.Lookup(tt.dial)
		if away := tt.dial == fault.MYCannotConnect; entry.Away != away {
			t.Errorf("%s: away is %t", tt.dial, entry.Away)
		}
	}
}
