package cdcmysql

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	protocol "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// seeking is longer than a live connection is silent.
const seeking = 13 * time.Second

// slowLog stands before a server as one that searches its log for long: of a log that is asked for the events that begin a file come
// at once, and all others after a while, in which the server's list of connections does not say that everything was sent.
type slowLog struct {
	server string
	asked  atomic.Int64 // how often the log was asked for
	// uuid and other, when they are set: whose log it is that is asked for, and who it says that it is.
	uuid, other string
}

// start returns the URL of the server by way of the proxy.
func (p *slowLog) start(t *testing.T, server *harness.MySQL) (url string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.server = server.Address()
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
	return strings.Replace(server.URL(""), server.Address(), l.Addr().String(), 1)
}

func (p *slowLog) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	var replica, dump atomic.Bool
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
			if replica.Load() && p.uuid != "" {
				packet = bytes.ReplaceAll(packet, []byte(p.uuid), []byte(p.other))
			}
			if dump.Load() && !held && eventOf(packet) {
				held = true
				if harness.Pause(ctx, seeking) != nil {
					return
				}
			}
			if !dump.Load() {
				packet = bytes.ReplaceAll(packet, []byte("has sent all binlog"), []byte("searches its binlog")) // as long
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
		if bytes.Contains(packet, []byte("@source_binlog_checksum")) {
			replica.Store(true)
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
			var p slowLog
			a, err := openURL(t, p.start(t, server), nil, newHeap(), &spec.MySQLSource{Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotNever}}, "seek.*")
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

// An address behind which two servers stand: the log beside a copy is not that of the server that the copy reads, and what lies before
// a place of the one says nothing about the other.
func TestLogOfAnotherServer(t *testing.T) {
	t.Parallel()
	run(t, mysql, "CREATE DATABASE two", "CREATE TABLE two.t (id int PRIMARY KEY)", "INSERT INTO two.t VALUES (1)")
	uuid, err := mysql.Text(t.Context(), "", "SELECT @@GLOBAL.server_uuid")
	if err != nil {
		t.Fatal(err)
	}
	p := slowLog{uuid: uuid, other: "00000000-0000-0000-0000-000000000001"}
	a, err := openURL(t, p.start(t, mysql), nil, newHeap(), &spec.MySQLSource{Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotInitial}}, "two.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.failure(t); fault.CodeOf(err) != fault.MYNotOneServer || !strings.Contains(err.Error(), uuid) || !strings.Contains(err.Error(), p.other) {
		t.Errorf("%v, want %s", err, fault.MYNotOneServer)
	}
	if len(a.rows) > 0 {
		t.Errorf("%d rows were copied", len(a.rows))
	}
}
