package pgrepl

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestInflowNeedsNoMark reads pieces of which each waits until the one before has arrived: nobody may wait for a mark that
// will not be reached.
func TestInflowNeedsNoMark(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil { // a stall is an error
		t.Fatal(err)
	}
	f := newInflow(conn)
	exchange := func(size int) {
		t.Helper()
		sent := bytes.Repeat([]byte{byte(size)}, size)
		go func() { _, _ = server.Write(sent) }()
		got := make([]byte, size)
		if _, err := io.ReadFull(f, got); err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	for range 3 {
		exchange(9)
		calm := f.start(conn)
		for _, size := range []int{1, 100, 8192, bulkMark, 3 * bulkRead, 3} {
			exchange(size)
		}
		calm()
		if !f.lowered.Load() || f.bulk {
			t.Error("the mark stays behind the bulk")
		}
	}
	server.Close()
	if n, err := f.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("end: %d, %v", n, err)
	}
}
