package cdcmysql

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	protocol "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/spec"
)

// seeking is longer than a live connection is silent.
const seeking = 13 * time.Second

// slowLog stands before a server as one that searches its log for long: of a log that is asked for the events that begin a file come
// at once, and all others after a while.
type slowLog struct {
	t      *testing.T
	server string
	asked  atomic.Int64 // how often the log was asked for
}

func startSlowLog(t *testing.T, server *harness.MySQL) (p *slowLog, port string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p = &slowLog{t: t, server: server.Address()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(ctx, client) })
		}
	})
	return p, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (p *slowLog) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	var dump atomic.Bool
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		defer client.Close()
		in := bufio.NewReader(server)
		for held := false; ; {
			packet, err := packetOf(in)
			if err != nil {
				return
			}
			if dump.Load() && !held && eventOf(packet) {
				held = true
				if harness.Pause(ctx, seeking) != nil {
					return
				}
			}
			if _, err := client.Write(packet); err != nil {
				return
			}
		}
	})
	in := bufio.NewReader(client)
	for {
		packet, err := packetOf(in)
		if err != nil {
			server.Close()
			return
		}
		if c := packet[4]; packet[3] == 0 && (c == protocol.COM_BINLOG_DUMP || c == protocol.COM_BINLOG_DUMP_GTID) {
			p.asked.Add(1)
			dump.Store(true)
		}
		if _, err := server.Write(packet); err != nil {
			return
		}
	}
}

// packetOf reads a packet of the protocol, with its head.
func packetOf(in *bufio.Reader) ([]byte, error) {
	head, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	packet := make([]byte, 4+int(binary.LittleEndian.Uint32(head)&0xffffff))
	_, err = io.ReadFull(in, packet)
	return packet, err
}

// eventOf reports whether a packet of the log has an event that does not begin a file.
func eventOf(packet []byte) bool {
	if len(packet) < 10 || packet[4] != protocol.OK_HEADER {
		return false
	}
	switch replication.EventType(packet[9]) {
	case replication.ROTATE_EVENT, replication.FORMAT_DESCRIPTION_EVENT, replication.PREVIOUS_GTIDS_EVENT, replication.MARIADB_GTID_LIST_EVENT,
		replication.MARIADB_BINLOG_CHECKPOINT_EVENT:
		return false
	default:
		return true
	}
}

// A server that searches its log for long before the first event is not asked again meanwhile, which would begin the search anew (O30).
func TestLongSeek(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*harness.MySQL{"gtid": mysql, "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server, "CREATE DATABASE seek", "CREATE TABLE seek.t (id int PRIMARY KEY)")
			p, port := startSlowLog(t, server)
			a, err := openURL(t, strings.Replace(server.URL(""), ":"+strconv.Itoa(server.Port)+"/", ":"+port+"/", 1), nil, newHeap(),
				&spec.MySQLSource{Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotNever}}, "seek.*")
			if err != nil {
				t.Fatal(err)
			}
			run(t, server, "INSERT INTO seek.t VALUES (1)")
			wantRows(t, a.take(t, 1), "insert seek.t id=1")
			if n := p.asked.Load(); n != 1 {
				t.Errorf("the log was asked for %d times", n)
			}
		})
	}
}
