package server

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	protocol "github.com/go-mysql-org/go-mysql/server"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
)

// commits is a server whose commits become visible when it was asked to wait for them so often.
type commits struct {
	protocol.EmptyHandler

	owned string
	after int
	asked int
}

func (c *commits) HandleQuery(sql string) (*mysql.Result, error) {
	const before = "11111111-1111-1111-1111-111111111111:1-5"
	answer := func(cells ...any) (*mysql.Result, error) {
		names := make([]string, len(cells))
		for i := range names {
			names[i] = string(rune('a' + i))
		}
		set, err := mysql.BuildSimpleResultset(names, [][]any{cells}, false)
		return &mysql.Result{Resultset: set}, err
	}
	switch {
	case strings.HasPrefix(sql, "SELECT WAIT_FOR_EXECUTED_GTID_SET("):
		c.asked++
		if c.asked > c.after {
			return answer("0")
		}
		return answer("1")
	case strings.HasPrefix(sql, "SELECT @@GLOBAL.gtid_purged"):
		return answer("", c.owned, before)
	}
	return nil, nil //nolint:nilnil // a statement that returns no rows
}

// speak serves connections until the test ends, and returns a target for them.
func speak(t *testing.T, h protocol.Handler) *Target {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conf := protocol.NewServer("8.4.0", mysql.DEFAULT_COLLATION_ID, mysql.AUTH_NATIVE_PASSWORD, nil, nil)
	auth := protocol.NewInMemoryAuthenticationHandler(mysql.AUTH_NATIVE_PASSWORD)
	if err := auth.AddUser("weir", "secret"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer raw.Close()
				conn, err := conf.NewCustomizedConn(raw, auth, h)
				for err == nil {
					err = conn.HandleCommand()
				}
			})
		}
	})
	target, err := NewTarget("mysql://weir:secret@"+l.Addr().String()+"/", "sources.db", "shop")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// listed is a server that answers the question for a connection with a row, with none, or with an error.
type listed struct {
	protocol.EmptyHandler

	cells []any
	err   error
}

func (l *listed) HandleQuery(sql string) (*mysql.Result, error) {
	if !strings.HasSuffix(sql, "WHERE id = 7") {
		return nil, errors.New("asked for another connection: " + sql)
	}
	if l.err != nil {
		return nil, l.err
	}
	var rows [][]any
	if l.cells != nil {
		rows = append(rows, l.cells)
	}
	set, err := mysql.BuildSimpleResultset([]string{"command", "state"}, rows, false)
	return &mysql.Result{Resultset: set}, err
}

// A server that answers lives, whatever it says; only what it says of the connection ends a wait, or that it says nothing.
func TestAskServer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server *listed
		works  bool
		what   string
	}{
		"at work":     {&listed{cells: []any{"Query", "executing"}}, true, "Query: executing"},
		"answered":    {&listed{cells: []any{"Sleep", ""}}, false, "Sleep"},
		"not there":   {&listed{}, false, "it does not know the connection"},
		"no room":     {&listed{err: mysql.NewDefaultError(mysql.ER_CON_COUNT_ERROR)}, true, "Too many connections"},
		"must not":    {&listed{err: mysql.NewError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "Access denied")}, true, "Access denied"},
		"out of work": {&listed{err: mysql.NewError(mysql.ER_SERVER_SHUTDOWN, "Server shutdown in progress")}, true, "Server shutdown in progress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e, err := speak(t, tt.server).errand(t.Context(), 7); err != nil || e != (errand{tt.works, tt.what}) {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
	target, err := NewTarget("mysql://weir:secret@127.0.0.1:1/", "sources.db", "shop")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := target.errand(t.Context(), 7); fault.CodeOf(err) != fault.MYCannotConnect {
		t.Errorf("nobody: %+v, %v", e, err)
	}
}

// A commit that the log has is waited for as long as it is under way; one that the server does not have at all, or whose log is not
// read any more, is not.
func TestAwaitExecuted(t *testing.T) {
	t.Parallel()
	set, err := position.ParseGTIDSet("11111111-1111-1111-1111-111111111111:1-7")
	if err != nil {
		t.Fatal(err)
	}
	ended := errors.New("the log has ended")
	for name, tt := range map[string]struct {
		server *commits
		until  int // how often it is asked before the log ends
		code   fault.Code
		err    error
		asked  int
	}{
		"under way":     {&commits{after: 4, owned: "11111111-1111-1111-1111-111111111111:6#31:7#32"}, 9, "", nil, 5},
		"lost":          {&commits{after: 9, owned: "11111111-1111-1111-1111-111111111111:6#31"}, 9, fault.MYNotOneServer, nil, 1},
		"log has ended": {&commits{after: 9, owned: "11111111-1111-1111-1111-111111111111:6#31:7#32"}, 2, "", ended, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := speak(t, tt.server).Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			rounds := 0
			err = s.AwaitExecuted(t.Context(), set, func() error {
				if rounds++; rounds > tt.until {
					return ended
				}
				return nil
			})
			switch {
			case tt.code != "":
				if fault.CodeOf(err) != tt.code || !strings.Contains(err.Error(), "111111111111:7") {
					t.Errorf("%v, want %s with the missing transaction", err, tt.code)
				}
			case !errors.Is(err, tt.err):
				t.Errorf("%v, want %v", err, tt.err)
			}
			if tt.server.asked != tt.asked {
				t.Errorf("asked %d times, want %d", tt.server.asked, tt.asked)
			}
		})
	}
}
