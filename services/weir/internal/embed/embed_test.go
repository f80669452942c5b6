package embed

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/meshtest"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

func TestLoopback(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{
		"": true, "127.0.0.1:4222": true, "localhost:0": true, "[::1]:4222": true, "127.9.9.9:1": true,
		"0.0.0.0:4222": false, ":4222": false, "[::]:4222": false, "10.0.0.1:4222": false, "db.example:4222": false, "4222": false,
	} {
		if got := Loopback(listen); got != want {
			t.Errorf("Loopback(%q) = %t", listen, got)
		}
	}
}

func TestATakenPortNamesTheFlag(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Start(t.Context(), Config{StoreDir: t.TempDir(), Listen: l.Addr().String(), Logger: slog.New(slog.DiscardHandler)})
	if e := fault.Of(err); e.Code != fault.AppListenTaken || !strings.Contains(e.Where, "--nats-listen") || fault.ExitCode(err) != 3 {
		t.Errorf("Start: %v", err)
	}
}

func TestEveryWriteIsSynced(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{StoreDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if c := s.s.JetStreamConfig(); c == nil || !c.SyncAlways {
		t.Errorf("JetStream runs with %+v", c)
	}
	if s.URL() != "" {
		t.Errorf("it listens on %s, and nobody asked for it", s.URL())
	}
}
