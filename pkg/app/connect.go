package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/telemetry"
)

// retryBus is the pause before a bus that cannot be reached is tried again.
const retryBus = 500 * time.Millisecond

var errNotConnected = errors.New("not connected")

// Connect opens the service's connection to the bus and makes it a condition of readiness. It waits for the bus as long
// as ctx allows; wrong credentials and the like are not waited for, nor is a server whose max_payload is too small for
// Weir (BUS_MAX_PAYLOAD). disconnect closes the connection and takes the condition back.
func (e Env) Connect(ctx context.Context) (conn *bus.Conn, disconnect func(), err error) {
	for told := false; ; told = true {
		conn, err = bus.Connect(ctx, e.Bus)
		if err == nil {
			break
		}
		if fault.ClassOf(err) != fault.Transient {
			return nil, nil, err
		}
		if !told {
			e.Telemetry.Logger.WarnContext(ctx, "waiting for the bus", telemetry.Err(err))
		}
		t := time.NewTimer(retryBus)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, nil, err
		}
	}
	if has := conn.MaxPayload(); has < bus.MinPayload {
		conn.Close()
		return nil, nil, fault.New(fault.BusMaxPayload, e.Service,
			fmt.Sprintf("max_payload is %d bytes, Weir needs %d", has, bus.MinPayload), "want", fmt.Sprint(bus.MinPayload))
	}
	remove := e.Health.Ready(e.Service+" bus", func() error {
		if !conn.Connected() {
			return errNotConnected
		}
		return nil
	})
	return conn, func() {
		remove()
		conn.Close()
	}, nil
}
