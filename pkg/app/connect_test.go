package app_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/telemetry"
)

func env(srv *meshtest.Server) app.Env {
	return app.Env{
		Service: "sink", Health: app.NewHealth(), Bus: bus.Options{Name: "sink", InProcess: srv},
		Telemetry: telemetry.Telemetry{Logger: slog.New(slog.DiscardHandler)},
	}
}

func TestConnectAsksForRoomInMessages(t *testing.T) {
	for payload, want := range map[int32]fault.Code{
		bus.MinPayload:     "",
		bus.MinPayload - 1: fault.BusMaxPayload,
		64 << 10:           fault.BusMaxPayload,
	} {
		srv := meshtest.StartServer(t, meshtest.ServerOptions{MaxPayload: payload})
		conn, disconnect, err := env(srv).Connect(t.Context())
		if fault.CodeOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("max_payload %d: %v, want %q", payload, err, want)
		}
		if err == nil {
			if !conn.Connected() {
				t.Error("not connected")
			}
			disconnect()
		}
	}
}

// The connection is a condition of readiness for as long as it is open.
func TestConnectIsAConditionOfReadiness(t *testing.T) {
	srv := meshtest.StartServer(t, meshtest.ServerOptions{})
	e := env(srv)
	conn, disconnect, err := e.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Health.Err(); err != nil {
		t.Errorf("connected, and not ready: %v", err)
	}
	conn.Close()
	if err := e.Health.Err(); err == nil {
		t.Error("closed, and ready")
	}
	disconnect()
	if err := e.Health.Err(); err != nil {
		t.Errorf("the condition outlives the connection: %v", err)
	}
}

func TestConnectWaitsUntilItsContextEnds(t *testing.T) {
	e := env(nil)
	e.Bus = bus.Options{Name: "sink", URL: "nats://127.0.0.1:1"}
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	if _, _, err := e.Connect(ctx); fault.CodeOf(err) != fault.BusUnreachable || ctx.Err() == nil {
		t.Errorf("gave up with %v, context %v", err, ctx.Err())
	}
}
