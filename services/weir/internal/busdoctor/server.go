package busdoctor

import (
	"encoding/json"
	"fmt"
	"time"

	"weir.dev/weir/pkg/preflight"
)

// Monitor is what /varz of a server's monitoring address says of its JetStream.
type Monitor struct {
	SyncAlways   bool
	SyncInterval time.Duration
	StoreDir     string
	MaxStore     int64
}

// ParseMonitor reads the answer of /varz.
func ParseMonitor(varz []byte) (*Monitor, error) {
	var v struct {
		JetStream struct {
			Config *struct {
				SyncAlways   bool          `json:"sync_always"`
				SyncInterval time.Duration `json:"sync_interval"`
				StoreDir     string        `json:"store_dir"`
				MaxStore     int64         `json:"max_storage"`
			} `json:"config"`
		} `json:"jetstream"`
	}
	if err := json.Unmarshal(varz, &v); err != nil {
		return nil, fmt.Errorf("read /varz: %w", err)
	}
	c := v.JetStream.Config
	if c == nil {
		return nil, errNoJetStream
	}
	return &Monitor{SyncAlways: c.SyncAlways, SyncInterval: c.SyncInterval, StoreDir: c.StoreDir, MaxStore: c.MaxStore}, nil
}

// sync looks at what no client can see: whether an acknowledged write is on the disk.
func (e *examination) sync() {
	const check = "sync_interval"
	const why = "without `always` an acknowledged write may be lost with the power of a machine, and with it a durable epoch"
	switch m := e.Monitor; {
	case e.Embedded:
		e.ok(check, "always: the server of `weir up` syncs every write")
	case m != nil && m.SyncAlways:
		e.ok(check, "always, by the server's monitoring address")
	case m != nil:
		e.add(preflight.Finding{
			Check: check, Status: preflight.Warning, Found: "the server syncs its files every " + m.SyncInterval.String(), Why: why,
			Remedy: &preflight.Remedy{Advice: "Set `jetstream { sync_interval: always }` in the configuration of every server and restart it."},
		})
	default:
		found := "a client cannot see it"
		if e.MonitorWhy != "" {
			found = "the monitoring address does not tell: " + e.MonitorWhy
		}
		e.add(preflight.Finding{
			Check: check, Status: preflight.Unknown, Found: found, Why: why,
			Remedy: &preflight.Remedy{
				Advice: "Look into the server's configuration, or ask its monitoring address (http_port): weir doctor --nats-monitor http://HOST:8222. It must say `sync_interval: always`.",
			},
		})
	}
}
