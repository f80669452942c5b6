package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// ceilingLowat is after how many bytes the reader that does nothing is woken.
const ceilingLowat = 32 << 10

// ceiling reads a slot's log until n inserts have come and throws every byte away. It looks at nothing but the kind of each
// message and is woken once for many, so it costs the machine next to nothing: what it takes is what the server needs to
// send the log, and no reader can be faster. It returns the time from the start of the server's session, and the
// processor time of the server's session.
func (s *stand) ceiling(slot string, n int) (took, used time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	config, err := pgconn.ParseConfig(s.source.URL("postgres"))
	if err != nil {
		s.Fatal(err)
	}
	config.RuntimeParams["replication"] = "database"
	config.RuntimeParams["application_name"] = "bench-ceiling"
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		s.Fatal(err)
	}
	pid := int(conn.PID())
	hijacked, err := conn.Hijack()
	if err != nil {
		s.Fatal(err)
	}
	defer hijacked.Conn.Close()
	start, err := (&pgproto3.Query{String: fmt.Sprintf(
		"START_REPLICATION SLOT %s LOGICAL 0/0 (proto_version '1', publication_names 'bench', binary 'true')", slot)}).Encode(nil)
	if err != nil {
		s.Fatal(err)
	}
	if _, err := hijacked.Conn.Write(start); err != nil {
		s.Fatal(err)
	}
	raw, err := hijacked.Conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		s.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, ceilingLowat)
	})
	if err != nil {
		s.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { hijacked.Conn.Close() })
	defer stop()
	buf, held := make([]byte, 1<<20), 0
	for n > 0 {
		got, err := hijacked.Conn.Read(buf[held:])
		if err != nil {
			s.Fatalf("read the log: %v, %d rows before the end", err, n)
		}
		held += got
		at := 0
		for held-at >= 5 {
			size := int(binary.BigEndian.Uint32(buf[at+1:])) + 1
			if held-at < size {
				break
			}
			if size > 30 && buf[at] == 'd' && buf[at+5] == 'w' && buf[at+30] == 'I' {
				n--
			}
			at += size
		}
		held = copy(buf, buf[at:held])
		if n < 1000 { // the end of the log may be less than the kernel waits for
			_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, 1) })
		}
	}
	ended, used := time.Now(), processorTime(pid)
	return ended.Sub(s.sessionStart(slot, nil)), used
}

// processorTime is what a process has used of the processors, see proc(5); 0 when it is gone. A tick is 10 ms.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before may hold spaces
	var user, system int64
	if f := strings.Fields(rest); len(f) > 12 {
		_, _ = fmt.Sscan(f[11], &user)
		_, _ = fmt.Sscan(f[12], &system)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
