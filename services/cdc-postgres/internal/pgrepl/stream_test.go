package pgrepl

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// A server that is at work on what it has not sent yet is waited for; one that is not counts as dead.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, err := NewTarget("postgres://127.0.0.1:1/shop", "sources.db", core.Session{})
		if err != nil {
			t.Fatal(err)
		}
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		working, asked := true, 0
		s := &Stream{target: target, conn: client, r: client, pid: 7, low: lowWaterOf(client), atWork: func(pid uint32) bool {
			if asked++; pid != 7 {
				t.Errorf("asked of process %d", pid)
			}
			return working
		}}
		const late = 3*silence + time.Second
		time.AfterFunc(late, func() {
			_, _ = server.Write(append([]byte{'d', 0, 0, 0, 22, 'k'}, make([]byte, 17)...)) // a keepalive
		})
		began := time.Now()
		chunk, err := s.Receive()
		if err != nil || len(chunk.Data) != 23 || asked != 3 {
			t.Errorf("after %s and %d questions: %d bytes, %v", time.Since(began), asked, len(chunk.Data), err)
		}
		working, began = false, time.Now()
		if _, err = s.Receive(); fault.CodeOf(err) != fault.PGDisconnected || time.Since(began) != silence {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
