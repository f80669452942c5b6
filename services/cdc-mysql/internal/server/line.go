package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
)

const (
	// silence is for how long nothing may come before it is asked whether the server still lives: far above the heartbeat of an idle
	// log. It is also how long the server may take to take a piece of what it is sent.
	silence = 10 * time.Second
	// grace is how long a server that says that it has nothing more to send is listened to once more: what it sent may have crossed
	// the question, or have come while this process itself stood still.
	grace = time.Second
	// pieceSize bounds what has to be taken within a silence: a slow line is none.
	pieceSize = 64 << 10
)

// line is a connection below the protocol, on which nobody waits for ever. No limit of time says how long an answer may take: a
// statement searches a large table, or waits for a lock, for hours, and a log is searched before its first event. What is bounded is
// silence: whenever nothing has come for a while, the server is asked on another connection what it does with this one, and waiting
// goes on only as long as it says that it is at work. So a wait ends that nobody would end: of a server that is frozen, or behind a
// network that swallows everything, neither of which closes a connection, and of an answer that got lost. A bound for the whole would
// cut what takes long, and begin it anew without end; the keepalive of TCP hears a host, and never a server that hangs on it.
type line struct {
	net.Conn

	ctx    context.Context //nolint:containedctx // of the questions, which Close ends
	cancel context.CancelFunc
	target *Target
	doing  func(ctx context.Context) (errand, error) // what the server does with the line; nil while limit holds
	limit  time.Time                                 // of everything, while the connection is opened

	mu   sync.Mutex
	lost error // why the line was given up
}

// errand is what a server does with a connection.
type errand struct {
	works bool
	what  string // in the server's words
}

func newLine(ctx context.Context, t *Target, conn net.Conn) *line {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &line{Conn: conn, ctx: ctx, cancel: cancel, target: t, limit: time.Now().Add(connectTimeout)}
}

// Close may be called from any goroutine, also more than once. It ends a Read and a Write.
func (l *line) Close() error {
	l.cancel()
	return l.Conn.Close()
}

// opened ends the limit of the opening: from now on silence is judged by what the server does with the connection of this number.
func (l *line) opened(id uint32) {
	l.limit = time.Time{}
	l.doing = func(ctx context.Context) (errand, error) { return l.target.errand(ctx, id) }
}

// Read waits as long as the server is at work.
func (l *line) Read(p []byte) (int, error) {
	began, patience := time.Now(), silence
	said, ended := "nothing comes from the server, which is being asked why", "" // what people are told, and why nothing more will come
	told := func() {}
	defer func() { told() }()
	for {
		until := time.Now().Add(patience)
		if l.doing == nil {
			until = l.limit
		}
		if err := l.SetReadDeadline(until); err != nil {
			return 0, err
		}
		n, err := l.Conn.Read(p)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		switch {
		case l.doing == nil:
			return 0, l.lose(err, fmt.Sprintf("%s took the connection and has not said who it is within %s", l.target.address, connectTimeout))
		case ended != "":
			return 0, l.lose(err, fmt.Sprintf("nothing has come since %s, and the server says that it has sent everything (%s)", clock(began), ended))
		}
		told()
		told = l.target.waits.begin(began, said)
		e, err := l.doing(l.ctx)
		switch {
		case err != nil && l.ctx.Err() != nil:
			return 0, net.ErrClosed
		case err != nil:
			return 0, l.lose(err, fmt.Sprintf("nothing has come since %s, and the server does not answer when it is asked (%s)", clock(began), why(err)))
		case e.works:
			patience, said = silence, "the server is at work and has sent nothing yet: "+e.what
			told()
			told = l.target.waits.begin(began, said)
		default:
			patience, ended = grace, e.what
		}
	}
}

// Write sends piece by piece, each of which has to be taken.
func (l *line) Write(p []byte) (sent int, err error) {
	for len(p) > 0 {
		until := time.Now().Add(silence)
		if l.doing == nil {
			until = l.limit
		}
		if err := l.SetWriteDeadline(until); err != nil {
			return sent, err
		}
		n, err := l.Conn.Write(p[:min(len(p), pieceSize)])
		sent, p = sent+n, p[n:]
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return sent, l.lose(err, fmt.Sprintf("the server has taken nothing of what it is sent since %s", clock(until.Add(-silence))))
		}
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// lose gives the line up. The protocol above keeps no more of an error than its text, so it is kept here.
func (l *line) lose(cause error, why string) error {
	err := fault.Wrap(cause, fault.MYSilent, l.target.where, why, "where", l.target.where)
	l.mu.Lock()
	l.lost = err
	l.mu.Unlock()
	return err
}

// fault gives an error on the line its code.
func (l *line) fault(err error) error {
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	return l.target.Fault(err)
}

// why is what a fault has seen.
func why(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Why != "" {
		return e.Why
	}
	return reason(err)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// errand asks what the server does with a connection. A server that answers with an error lives, and is believed to be at work, and
// so is one that has no room for one more connection.
func (t *Target) errand(ctx context.Context, id uint32) (errand, error) {
	conn, l, err := t.connect(ctx)
	if err == nil {
		defer func() { _ = l.Close() }()
		s := &Session{target: t, conn: conn, line: l}
		var row []string
		row, err = s.One(ctx, fmt.Sprintf("SELECT command, COALESCE(state, '') FROM information_schema.processlist WHERE id = %d", id))
		if err == nil {
			return errandOf(row), nil
		}
	}
	if my, ok := errors.AsType[*mysql.MyError](err); ok {
		return errand{works: true, what: my.Message}, nil
	}
	return errand{}, err
}

// errandOf judges what the server's list of connections says of one.
func errandOf(row []string) errand {
	if len(row) == 0 {
		return errand{what: "it does not know the connection"}
	}
	command, state := row[0], row[1]
	e := errand{works: true, what: strings.TrimSuffix(command+": "+state, ": ")}
	switch {
	case command == "Sleep": // it waits for a statement, and has answered the last
		e.works = false
	case strings.HasPrefix(command, "Binlog Dump"):
		// At the end of its log a server sends heartbeats. While it searches it says something else, or nothing.
		e.works = !strings.Contains(state, "has sent all binlog")
	}
	return e
}
