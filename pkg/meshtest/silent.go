package meshtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// SilentPostgres is a PostgreSQL server that lets everybody in and then never says another word, like one that was frozen
// or whose machine vanished: every statement hangs. It returns a connection URL, and a channel that holds a token after
// the server has swallowed something of an open session. The server lives as long as the test, and not in a bubble.
func SilentPostgres(tb testing.TB) (url string, swallowed <-chan struct{}) {
	tb.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	heard := make(chan struct{}, 1)
	over := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				<-over
				_ = conn.Close()
			})
			work.Go(func() { swallow(conn, heard) })
		}
	})
	tb.Cleanup(func() {
		close(over)
		_ = l.Close()
		work.Wait()
	})
	return fmt.Sprintf("postgres://weir:secret@%s/target?sslmode=disable", l.Addr()), heard
}

// swallow lets one session in and reads until the other side leaves.
func swallow(conn net.Conn, heard chan<- struct{}) {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(size[:]))-4); err != nil {
		return
	}
	// AuthenticationOk, ReadyForQuery (idle).
	if _, err := conn.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 0, 'Z', 0, 0, 0, 5, 'I'}); err != nil {
		return
	}
	buf := make([]byte, 1<<10)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
		select {
		case heard <- struct{}{}:
		default:
		}
	}
}
