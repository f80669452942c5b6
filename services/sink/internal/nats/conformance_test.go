package nats

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

// target is the configuration of a sink with a stream of its own on a server of its own.
func target(t *testing.T, format spec.EventFormat) (*meshtest.Server, spec.Sink) {
	t.Helper()
	srv := meshtest.StartServer(t, meshtest.ServerOptions{TCP: true, MaxPayload: 1 << 20})
	return srv, spec.Sink{
		Name: "events", Type: "nats", From: []string{"db"}, Mode: spec.Changelog, Config: &spec.NATSSink{
			URL: config.NewSecret(srv.URL()), Stream: "CHANGES", Prefix: "cdc.shop", Format: format, Create: true,
		},
	}
}

func plain(ref string) (string, error) { return ref, nil }

// outlet is a reader's view of the sink's stream.
func outlet(tb testing.TB, srv *meshtest.Server) *bus.Outlet {
	tb.Helper()
	conn, err := bus.Connect(tb.Context(), bus.Options{Name: "reader", InProcess: srv})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(conn.Close)
	o, err := conn.OpenOutlet(tb.Context(), bus.OutletConfig{Stream: "CHANGES", Prefix: "cdc.shop", Create: true})
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, fixture)
}

// Random histories. To look for more: -run TestRandomHistory -seeds 100 -steps 200.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	histories.Run(t, fixture)
}

var histories = sinktest.HistoryFlags(1, 2, 40)

func fixture(t *testing.T) sinktest.Fixture {
	t.Helper()
	srv, s := target(t, spec.Debezium)
	o := outlet(t, srv)
	return sinktest.Fixture{
		Connector: Connector{}, Spec: s, Resolve: plain, TinyEpochs: 100,
		Read: func(tb testing.TB, table rows.TableID) []sinktest.Row {
			tb.Helper()
			return read(tb, o, table)
		},
	}
}

// read decodes what a reader of a table's subject sees.
func read(tb testing.TB, o *bus.Outlet, id rows.TableID) []sinktest.Row {
	tb.Helper()
	subject := "cdc.shop.db." + string(id)
	all, err := o.Read(tb.Context(), subject, time.Time{})
	if err != nil {
		tb.Fatal(err)
	}
	var found []sinktest.Row
	seen := make(map[string]bool)
	for _, e := range all {
		if at := e.Header.Get("Weir-Epoch") + "." + e.Header.Get("Weir-Index"); seen[at] {
			tb.Errorf("event %s is there twice", at)
		} else {
			seen[at] = true
		}
		found = append(found, decoded(tb, e.Value)...)
	}
	return found
}

// decoded is an event as the rows that the source sent: an update may have one before it.
func decoded(tb testing.TB, data []byte) []sinktest.Row {
	tb.Helper()
	var v struct {
		Op            string
		Before, After map[string]json.RawMessage
		Source        struct{ Absent []string }
	}
	unmarshal(tb, data, &v)
	if v.After == nil {
		v.Before, v.After = nil, v.Before
	}
	row := cells(tb, v.After)
	row.Op = map[string]rows.Op{"r": rows.OpRead, "c": rows.OpInsert, "u": rows.OpUpdateAfter, "d": rows.OpDelete, "t": rows.OpTruncate}[v.Op]
	for _, name := range v.Source.Absent {
		row.Cells[name] = sinktest.Absent
	}
	if v.Before == nil {
		return []sinktest.Row{row}
	}
	before := cells(tb, v.Before)
	before.Op = rows.OpUpdateBefore
	return []sinktest.Row{before, row}
}

func cells(tb testing.TB, columns map[string]json.RawMessage) sinktest.Row {
	tb.Helper()
	r := sinktest.Row{Cells: make(map[string]string)}
	for name, raw := range columns {
		var cell any
		unmarshal(tb, raw, &cell)
		switch cell := cell.(type) {
		case nil:
			r.Cells[name] = sinktest.Null
		case string:
			r.Cells[name] = cell
		default:
			r.Cells[name] = string(raw)
		}
	}
	return r
}

func unmarshal(tb testing.TB, data []byte, v any) {
	tb.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		tb.Fatal(fmt.Errorf("event %s: %w", data, err))
	}
}

var _ sink.Connector = Connector{}
