package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
)

func TestProbeSaysWhatTheProcessSays(t *testing.T) {
	health := NewHealth()
	server, err := Listen(t.Context(), "127.0.0.1:0", "--http", health, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	run := func(addr string) (code int, text string) {
		var out output
		code = Execute(Process{Args: []string{"--http", addr, "health"}, Stdout: &out, Stderr: &out}, "sink", serviceConfig{}, nil)
		return code, out.String()
	}
	for _, addr := range []string{server.Addr(), "0.0.0.0:" + port, ":" + port} {
		if code, text := run(addr); code != fault.ExitOK || !strings.HasPrefix(text, "ok\n") {
			t.Errorf("ready at %s: exit %d, %s", addr, code, text)
		}
	}
	defer health.Ready("the target", func() error { return errors.New("nobody answers") })()
	if code, text := run(server.Addr()); code == fault.ExitOK || !strings.Contains(text, "[-] the target: nobody answers") || !strings.Contains(text, "WEIR-APP-008") {
		t.Errorf("not ready: exit %d, %s", code, text)
	}
	for _, addr := range []string{"127.0.0.1:1", "127.0.0.1:0"} {
		if code, text := run(addr); code == fault.ExitOK || !strings.Contains(text, "WEIR-APP-008") {
			t.Errorf("nobody at %s: exit %d, %s", addr, code, text)
		}
	}
}
