package pgrepl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"weir.dev/weir/pkg/position"
)

const (
	// chunkSize is how much is read at once when there is much.
	chunkSize = 256 << 10
	// smallRead is below which a read shows that the server is slower than we are.
	smallRead = 32 << 10
	// A slower server is let run on before it is asked again: waking for every message costs both sides more than the
	// message itself. The pause grows while reads stay tiny, and is never above the linger of a batch.
	napMin, napMax = time.Millisecond, 4 * time.Millisecond
	tinyRead       = 8 << 10
	// keepaliveSize is that of a keepalive: alone, it is the answer to a status message, and nothing follows it.
	keepaliveSize = 5 + 18
	// spares is how many used buffers are kept for reading.
	spares = 8
	// silence is after how long without a byte the connection counts as dead. Status messages ask for an answer often enough.
	silence = 15 * time.Second
	// maxMessage is PostgreSQL's own limit of one message.
	maxMessage = 1 << 30
)

// System is what a replication connection says about the server.
type System struct {
	Identifier string `json:"identifier"`
	Timeline   uint32 `json:"timeline"`
}

// StartOptions say what a replication connection reads.
type StartOptions struct {
	Slot        string
	Publication string
	From        position.LSN
	Binary      bool
	// AtWork is asked, by the goroutine that receives, when nothing has come for so long that the connection would count
	// as dead: whether the server's process is at work on what it has not sent yet. Nil says no.
	AtWork func(pid uint32) bool
}

// Stream is a replication connection in copy mode. Receive belongs to one goroutine; Status and Close may be called
// from others.
type Stream struct {
	target *Target
	slot   string
	conn   net.Conn
	r      io.Reader
	system System
	pid    uint32 // of the server's process
	atWork func(pid uint32) bool

	buf   []byte // received bytes without a complete message yet
	xid   uint32 // of the last transaction that has begun
	fail  error  // what to return once everything before it was handed out
	nap   time.Duration
	low   lowWater
	spare chan []byte

	write  sync.Mutex
	status [39]byte
}

// Start opens a replication connection and lets the slot send from a position. A slot that somebody holds is the fault
// PG_SLOT_ACTIVE.
func (t *Target) Start(ctx context.Context, opts StartOptions) (*Stream, error) {
	hijacked, r, err := t.replication(ctx)
	if err != nil {
		return nil, err
	}
	s := &Stream{
		target: t, slot: opts.Slot, conn: hijacked.Conn, r: r, pid: hijacked.PID, atWork: opts.AtWork,
		buf: make([]byte, 0, chunkSize), spare: make(chan []byte, spares), low: lowWaterOf(hijacked.Conn),
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	err = s.start(opts)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		s.conn.Close()
		return nil, t.slotFault(err, opts.Slot)
	}
	return s, nil
}

func (s *Stream) start(opts StartOptions) error {
	rows, err := s.query("IDENTIFY_SYSTEM")
	if err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return errors.New("identify system: unexpected answer")
	}
	timeline, err := strconv.ParseUint(rows[0][1], 10, 32)
	if err != nil {
		return fmt.Errorf("identify system: timeline: %w", err)
	}
	s.system = System{Identifier: rows[0][0], Timeline: uint32(timeline)}
	options := "proto_version '1', publication_names " + literal(identifierList(opts.Publication))
	if opts.Binary {
		options += ", binary 'true'"
	}
	_, err = s.query(fmt.Sprintf("START_REPLICATION SLOT %s LOGICAL %s (%s)",
		pgx.Identifier{opts.Slot}.Sanitize(), opts.From, options))
	return err
}

// identifierList is the form of publication_names: identifiers, quoted, separated by commas.
func identifierList(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// query sends a command and reads its rows, until the server is ready again or has switched to copy mode.
func (s *Stream) query(sql string) ([][]string, error) {
	msg, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		return nil, err
	}
	if _, err := s.conn.Write(msg); err != nil {
		return nil, err
	}
	var rows [][]string
	var failed error
	for {
		kind, body, err := s.message()
		if err != nil {
			return nil, errors.Join(failed, err)
		}
		switch kind {
		case 'D':
			var row pgproto3.DataRow
			if err := row.Decode(body); err != nil {
				return nil, err
			}
			cells := make([]string, len(row.Values))
			for i, v := range row.Values {
				cells[i] = string(v)
			}
			rows = append(rows, cells)
		case 'E':
			failed = serverError(body)
			if pg, ok := errors.AsType[*pgconn.PgError](failed); ok && pg.Severity == "FATAL" {
				return nil, failed // no "ready" follows
			}
		case 'W', 'Z':
			return rows, failed
		}
	}
}

// message reads one message outside copy mode; nothing is read beyond it.
func (s *Stream) message() (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[1:])) - 4
	if n < 0 || n > maxMessage {
		return 0, nil, errors.New("message of impossible length")
	}
	body = make([]byte, n)
	_, err = io.ReadFull(s.r, body)
	return head[0], body, err
}

func serverError(body []byte) error {
	var e pgproto3.ErrorResponse
	if err := e.Decode(body); err != nil {
		return err
	}
	return pgconn.ErrorResponseToPgError(&e)
}

// System is what the server said about itself when the connection was opened.
func (s *Stream) System() System { return s.system }

// Receive waits for the next bytes of the log. The chunk's memory is the caller's until Release.
func (s *Stream) Receive() (Chunk, error) {
	for s.fail == nil {
		if cap(s.buf)-len(s.buf) < smallRead {
			grown := make([]byte, len(s.buf), max(2*cap(s.buf), chunkSize))
			copy(grown, s.buf)
			s.buf = grown
		}
		if err := s.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			s.fail = err
			break
		}
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if err != nil && !s.patient(err) {
			s.fail = err
		}
		chunk, end := s.cut()
		if end == 0 {
			continue
		}
		s.take(&chunk, end)
		s.pause(n)
		return chunk, nil
	}
	return Chunk{}, s.target.streamFault(s.fail, s.slot)
}

// patient reports whether silence is to be borne: a row of hundreds of megabytes takes the server long, and it sends nothing
// meanwhile. Read anew it would take as long again, without end.
func (s *Stream) patient(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && s.atWork != nil && s.atWork(s.pid)
}

// pause waits before the next read, by how much the last one found.
func (s *Stream) pause(n int) {
	switch {
	case n >= smallRead, n == keepaliveSize:
		s.nap = 0
		return
	case n >= tinyRead:
		s.nap = napMin
	default:
		s.nap = min(max(2*s.nap, napMin), napMax)
	}
	s.low.set(smallRead)
	time.Sleep(s.nap)
	s.low.set(1)
}

// cut finds the end of the last whole message. Anything but log data ends the stream behind what came before it.
func (s *Stream) cut() (c Chunk, end int) {
	b := s.buf
	for len(b)-end >= 5 {
		n := int(binary.BigEndian.Uint32(b[end+1:])) + 1
		if n < 5 || n > maxMessage {
			s.fail = errors.New("message of impossible length")
			return c, end
		}
		if len(b)-end < n {
			s.reserve(end, n)
			return c, end
		}
		switch b[end] {
		case 'd':
			if n > 30 && b[end+5] == 'w' {
				switch b[end+30] {
				case 'B':
					if n > 50 {
						s.xid = binary.BigEndian.Uint32(b[end+47:]) // behind the places of its commit, in the log and in time
					}
				case 'R':
					c.Relations = append(c.Relations, Relation{end, s.xid})
				}
			}
		case 'E':
			s.fail = serverError(b[end+5 : end+n])
			return c, end
		case 'N', 'S':
			// A notice or a changed setting: nothing of the log. It must not reach the decoder.
			if s.fail = unpublished(b[end], b[end+5:end+n]); s.fail != nil {
				return c, end
			}
			copy(b[end:], b[end+n:])
			b = b[:len(b)-n]
			s.buf = b
			continue
		default:
			s.fail = fmt.Errorf("the server ended the stream (message %q): %w", b[end], io.EOF)
			return c, end
		}
		end += n
	}
	return c, end
}

// errUnpublished: the log has changes of a time when the publication did not exist, and the server goes on without them.
var errUnpublished = errors.New("changes without a publication")

// unpublished is the error that a notice is. Servers before 18 end the stream where the publication did not exist; since
// 18 they warn and leave the changes out.
func unpublished(kind byte, body []byte) error {
	if kind != 'N' {
		return nil
	}
	if err := serverError(body); state(err) == stateNotInPrerequisite {
		return fmt.Errorf("%w: %w", errUnpublished, err)
	}
	return nil
}

// reserve makes room for a message longer than the buffer, once, instead of doubling up to it.
func (s *Stream) reserve(end, n int) {
	if end == 0 && n > cap(s.buf) {
		grown := make([]byte, len(s.buf), n+smallRead)
		copy(grown, s.buf)
		s.buf = grown
	}
}

// take moves the first end bytes into the chunk. A buffer that is mostly full is given away, a little is copied, so
// that what waits in the queue is not mostly empty.
func (s *Stream) take(c *Chunk, end int) {
	rest := s.buf[end:]
	if end < chunkSize/4 {
		c.Data = append([]byte(nil), s.buf[:end]...)
		s.buf = s.buf[:copy(s.buf, rest)]
		return
	}
	c.Data, c.spare = s.buf[:end], s.spare
	s.buf = append(s.buffer(len(rest)+smallRead), rest...)
}

// buffer returns an empty buffer with room for at least n bytes.
func (s *Stream) buffer(n int) []byte {
	select {
	case b := <-s.spare:
		if cap(b) >= n && cap(b) <= 2*chunkSize { // a buffer of one huge message is not kept
			return b
		}
	default:
	}
	return make([]byte, 0, max(chunkSize, n))
}

// streamFault translates the end of a stream.
func (t *Target) streamFault(err error, slot string) error {
	if TooBig(err) {
		return t.rowFault(err)
	}
	if state(err) == stateUndefinedObject || errors.Is(err, errUnpublished) {
		return t.unpublishedFault(err, slot)
	}
	return t.slotFault(err, slot)
}

// Status tells the server how far we are, and asks for an answer or not. flushed lets it forget what lies before; zero is
// refused, because the server takes it for the truth.
func (s *Stream) Status(written, flushed position.LSN, ask bool, now time.Time) error {
	if flushed == 0 || written < flushed {
		panic(fmt.Sprintf("pgrepl: status with written %s, flushed %s", written, flushed))
	}
	s.write.Lock()
	defer s.write.Unlock()
	b := s.status[:]
	b[0], b[5] = 'd', 'r'
	binary.BigEndian.PutUint32(b[1:], uint32(len(b)-1))
	binary.BigEndian.PutUint64(b[6:], uint64(written))
	binary.BigEndian.PutUint64(b[14:], uint64(flushed))
	binary.BigEndian.PutUint64(b[22:], uint64(flushed)) // applied
	binary.BigEndian.PutUint64(b[30:], uint64(now.UnixMicro()-postgresEpoch))
	b[38] = 0
	if ask {
		b[38] = 1
	}
	if err := s.conn.SetWriteDeadline(now.Add(silence)); err != nil {
		return s.target.Fault(err)
	}
	if _, err := s.conn.Write(b); err != nil {
		return s.target.Fault(err)
	}
	return nil
}

// postgresEpoch is 2000-01-01 in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

// Close ends the connection; a Receive under way returns.
func (s *Stream) Close() error {
	// A polite end frees the slot at once; without it the walsender finds out at its next write. The deadline comes
	// before the lock because a Status may be stuck in its write.
	_ = s.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	s.write.Lock()
	defer s.write.Unlock()
	_, _ = s.conn.Write([]byte{'X', 0, 0, 0, 4})
	return s.conn.Close()
}
