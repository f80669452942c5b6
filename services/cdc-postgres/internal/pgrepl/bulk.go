package pgrepl

import (
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// bulkRead is how much a bulk session reads at once, bulkMark how much has to have arrived before it is woken.
	bulkRead, bulkMark = 128 << 10, 64 << 10
	// bulkLinger is how long it waits for that much. It is the most by which the end of a result comes late.
	bulkLinger = time.Millisecond
)

// inflowName is the name of a session's inflow among its custom data.
const inflowName = "weir.inflow"

// inflow is where a session's messages are read from. The server sends a result in pieces of 8 KiB, and each would wake
// the reader, who is mostly faster than the server: half of what receiving costs is being woken. While a result of many
// rows is read, the kernel wakes when a mark is reached, or a timer does. It is for one goroutine, except lower.
type inflow struct {
	r       io.Reader
	low     lowWater
	buf     []byte // nil unless a bulk was read
	at, end int
	bulk    bool
	timer   *time.Timer
	lowered atomic.Bool // the kernel wakes for one byte
}

func newInflow(r io.Reader) *inflow {
	f := &inflow{r: r}
	f.lowered.Store(true)
	return f
}

// Read implements io.Reader.
func (f *inflow) Read(p []byte) (int, error) {
	if f.at == f.end {
		if !f.bulk {
			return f.r.Read(p)
		}
		f.at, f.end = 0, 0
		n, err := f.fill()
		if f.end = n; n == 0 {
			return 0, err
		}
		// An error beside bytes comes again from the next read.
	}
	n := copy(p, f.buf[f.at:f.end])
	f.at += n
	return n, nil
}

// fill reads what has reached the mark, or what there is after the linger.
func (f *inflow) fill() (int, error) {
	if f.lowered.Swap(false) {
		f.low.set(bulkMark)
	}
	f.timer.Reset(bulkLinger)
	n, err := f.r.Read(f.buf)
	f.timer.Stop()
	return n, err
}

// lower wakes who waits for the mark: the kernel looks again when the mark changes.
func (f *inflow) lower() {
	f.low.set(1)
	f.lowered.Store(true)
}

// Bulk prepares a session that [Target.SQL] opened for results of many rows, until the returned function is called: their
// bytes are taken in large pieces, and the last ones may come a millisecond late. The session's goroutine calls both.
func Bulk(conn *pgx.Conn) (calm func()) {
	f, ok := conn.PgConn().CustomData()[inflowName].(*inflow)
	if !ok {
		return func() {}
	}
	return f.start(conn.PgConn().Conn())
}

// start begins a bulk over conn.
func (f *inflow) start(conn net.Conn) (calm func()) {
	if f.buf == nil {
		f.buf = make([]byte, bulkRead)
		f.low = lowWaterOf(conn)
		f.timer = time.AfterFunc(bulkLinger, f.lower)
		f.timer.Stop()
	}
	f.bulk = true
	return func() {
		f.bulk = false
		f.timer.Stop()
		f.lower()
	}
}
