package server

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/fault"
)

// pipe is a line to a server in this process, which is asked by doing.
func pipe(t *testing.T, doing func(context.Context) (errand, error)) (l *line, server net.Conn) {
	t.Helper()
	target, err := NewTarget("mysql://weir:secret@db.example:3307/", "sources.db", "shop")
	if err != nil {
		t.Fatal(err)
	}
	client, server := net.Pipe()
	l = newLine(t.Context(), target, client)
	if doing != nil {
		l.opened(7)
		l.doing = doing
	}
	t.Cleanup(func() { l.Close(); server.Close() })
	return l, server
}

func wantSilent(t *testing.T, l *line, err error, began time.Time, after time.Duration, words string) {
	t.Helper()
	if took := time.Since(began); took != after {
		t.Errorf("given up after %s, want %s", took, after)
	}
	if err = l.fault(errors.New(err.Error())); fault.CodeOf(err) != fault.MYSilent || !strings.Contains(err.Error(), words) {
		t.Errorf("%v, want %s with %q", err, fault.MYSilent, words)
	}
}

// However long a server is at work it is waited for, and people can see that; one that has nothing to send, or does not answer, is
// given up.
func TestSilence(t *testing.T) {
	buf := make([]byte, 8)
	within := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	within("at work", func(t *testing.T) {
		asked := 0
		l, server := pipe(t, func(context.Context) (errand, error) {
			asked++
			return errand{works: true, what: "Query: executing"}, nil
		})
		const late = 3*silence + time.Second
		time.AfterFunc(late-time.Millisecond, func() {
			if w := l.target.Waits(); len(w) != 1 || !strings.Contains(w[0].What, "Query: executing") || time.Since(w[0].Since) != late-time.Millisecond {
				t.Errorf("waits %+v", w)
			}
		})
		time.AfterFunc(late, func() { _, _ = server.Write([]byte("row")) })
		if n, err := l.Read(buf); n != 3 || err != nil || asked != 3 {
			t.Errorf("%d questions, then %d bytes, %v", asked, n, err)
		}
		if w := l.target.Waits(); len(w) > 0 {
			t.Errorf("waits behind the answer: %+v", w)
		}
	})
	within("an answer that crosses the question", func(t *testing.T) {
		var server net.Conn
		l, server := pipe(t, func(context.Context) (errand, error) {
			time.AfterFunc(grace/2, func() { _, _ = server.Write([]byte("row")) })
			return errand{what: "Sleep"}, nil
		})
		if n, err := l.Read(buf); n != 3 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	within("nothing to send", func(t *testing.T) {
		l, _ := pipe(t, func(context.Context) (errand, error) { return errand{what: "Sleep"}, nil })
		began := time.Now()
		_, err := l.Read(buf)
		wantSilent(t, l, err, began, silence+grace, "it has sent everything (Sleep)")
	})
	within("no answer", func(t *testing.T) {
		l, _ := pipe(t, func(context.Context) (errand, error) {
			<-time.After(connectTimeout)
			return errand{}, fault.New(fault.MYCannotConnect, "sources.db", "db.example:3307: no route to host", "where", "sources.db")
		})
		began := time.Now()
		_, err := l.Read(buf)
		wantSilent(t, l, err, began, silence+connectTimeout, "no route to host")
	})
	within("while it is opened", func(t *testing.T) {
		l, server := pipe(t, nil)
		began := time.Now()
		time.AfterFunc(connectTimeout/2, func() { _, _ = server.Write([]byte("greeting")) })
		if n, err := l.Read(buf); n != 8 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		_, err := l.Read(buf)
		wantSilent(t, l, err, began, connectTimeout, "db.example:3307")
	})
	within("closed while it asks", func(t *testing.T) {
		l, _ := pipe(t, func(ctx context.Context) (errand, error) { <-ctx.Done(); return errand{}, ctx.Err() })
		time.AfterFunc(silence+time.Second, func() { l.Close() })
		if _, err := l.Read(buf); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// What is sent has to be taken piece by piece: a slow server may be slow, one that takes nothing is given up.
func TestNothingIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, server := pipe(t, func(context.Context) (errand, error) { return errand{}, nil })
		began := time.Now()
		go func() {
			buf := make([]byte, pieceSize)
			for range 3 {
				<-time.After(silence - time.Second)
				if _, err := server.Read(buf); err != nil {
					t.Error(err)
				}
			}
		}()
		n, err := l.Write(make([]byte, 3*pieceSize+1))
		if n != 3*pieceSize {
			t.Errorf("%d bytes were taken", n)
		}
		wantSilent(t, l, err, began, 3*(silence-time.Second)+silence, "taken nothing")
	})
}

// What servers say of a connection, and whether more will come.
func TestErrand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		row   []string
		works bool
	}{
		{nil, false},
		{[]string{"Sleep", ""}, false},
		{[]string{"Query", "executing"}, true},
		{[]string{"Query", "Waiting for table metadata lock"}, true},
		{[]string{"Killed", ""}, true},
		{[]string{"Binlog Dump GTID", ""}, true},
		{[]string{"Binlog Dump", "Sending binlog event to slave"}, true},
		{[]string{"Binlog Dump", "Finished reading one binlog; switching to next binlog"}, true},
		{[]string{"Binlog Dump GTID", "Source has sent all binlog to replica; waiting for more updates"}, false},
		{[]string{"Binlog Dump", "Master has sent all binlog to slave; waiting for more updates"}, false},
	} {
		if e := errandOf(tt.row); e.works != tt.works || e.what == "" {
			t.Errorf("%q: %+v", tt.row, e)
		}
	}
}
