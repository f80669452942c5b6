package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

// listen serves each connection on a loopback port until the test ends.
func listen(t *testing.T, serve func(client net.Conn)) (port int) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				serve(client)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// through is the source's URL by way of another port.
func (p *patient) through(port int) string {
	return strings.Replace(p.pg.URLAs(p.role, p.name), p.pg.Address(), fmt.Sprintf("127.0.0.1:%d", port), 1)
}

// TestAPoolerAnswers stands a relay before the server that, as poolers do, gives its clients process ids of its own.
func TestAPoolerAnswers(t *testing.T) {
	t.Parallel()
	p := admit(t, server, "pooled")
	direct := server.URLAs(p.role, p.name)
	port := listen(t, func(client net.Conn) {
		upstream, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", server.Address())
		if err != nil {
			return
		}
		defer upstream.Close()
		go func() { _, _ = io.Copy(upstream, client) }()
		if relayStart(client, upstream) == nil {
			_, _ = io.Copy(client, upstream)
		}
	})
	p.url = p.through(port)
	bad := ill(p.examine(t), "")
	if len(bad) != 1 || bad[0].Check != "pooler" || bad[0].Status != preflight.Warning || !strings.Contains(bad[0].Remedy.Advice, "sources.db.url") {
		t.Fatalf("%+v", bad)
	}
	p.url = direct // the remedy
	if bad := ill(p.examine(t), ""); len(bad) > 0 {
		t.Errorf("%+v", bad)
	}
}

// relayStart passes a session's start on, up to the first message behind the process id, which it changes.
func relayStart(client io.Writer, server io.Reader) error {
	for {
		var head [5]byte
		if _, err := io.ReadFull(server, head[:]); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return err
		}
		const backendKeyData = 'K'
		if head[0] == backendKeyData {
			binary.BigEndian.PutUint32(body, binary.BigEndian.Uint32(body)+1)
		}
		if _, err := client.Write(append(head[:], body...)); err != nil || head[0] == backendKeyData {
			return err
		}
	}
}

// TestAPoolerRefuses is what a pooler says that does not know the settings of a session.
func TestAPoolerRefuses(t *testing.T) {
	t.Parallel()
	p := admit(t, server, "refused")
	port := listen(t, func(client net.Conn) {
		b := pgproto3.NewBackend(client, client)
		if _, err := b.ReceiveStartupMessage(); err != nil {
			return
		}
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: row_security"})
		_ = b.Flush()
	})
	p.url = p.through(port)
	bad := ill(p.examine(t), "pooler")
	if len(bad) != 1 || bad[0].Code != fault.PGCannotConnect || !strings.Contains(bad[0].Remedy.Advice, "pooler") {
		t.Errorf("%+v", bad)
	}
}

// TestWrongPasswords is what is said of servers that let nobody in: the start's error, and no password.
func TestWrongPasswords(t *testing.T) {
	t.Parallel()
	p := admit(t, server, "stranger")
	p.role.Password = "CANARY" + p.role.Password
	found := p.examine(t)
	var codes []fault.Code
	for _, f := range ill(found, "connect") {
		codes = append(codes, f.Code)
	}
	if len(codes) != 2 || codes[0] != fault.PGWrongPassword || codes[1] != fault.SinkWrongPassword {
		t.Errorf("%v: %+v", codes, found)
	}
}
