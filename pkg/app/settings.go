package app

import (
	"net"
	"time"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/telemetry"
)

// Settings are those that every service has; they share file and prefix with the service's own.
type Settings struct {
	// HTTP is where health, metrics and profiles are served. Loopback by default, because profiles are; give 0.0.0.0:PORT
	// where probes come from outside.
	HTTP string `yaml:"http" doc:"Address of /livez, /readyz, /metrics and /debug/pprof."`
	// Node is the identity of this process in the mesh; by default <host>-<6 random>, new at each start.
	Node string `yaml:"node" pattern:"[A-Za-z0-9][A-Za-z0-9._-]{0,62}" hint:"letters, digits, dots and dashes, at most 63" doc:"Identity of this process in the mesh."`
	NATS NATS   `yaml:"nats"`
	Log  Log    `yaml:"log"`
	// Shutdown is how long a stop may take before the process ends by force. Raise it when a sink's commits take longer.
	Shutdown config.Duration `yaml:"shutdown_timeout" min:"100ms" max:"1h" doc:"Longest graceful stop."`
}

// NATS says how to reach the mesh.
type NATS struct {
	URL   config.Secret `yaml:"url" doc:"Server, or several with commas between."`
	Creds config.Text   `yaml:"creds" doc:"Path of a credentials file."`
}

// Log says what is logged and how.
type Log struct {
	Level  string           `yaml:"level" enum:"debug,info,warn,error" doc:"Least level that is logged."`
	Format telemetry.Format `yaml:"format" enum:"auto,text,json" doc:"auto: text on a terminal, else JSON."`
}

// defaultSettings takes NATS_URL and NATS_CREDS, which the tools of NATS use too, below Weir's own settings.
func defaultSettings(env func(string) (string, bool)) Settings {
	s := Settings{
		HTTP:     "127.0.0.1:0",
		NATS:     NATS{URL: config.NewSecret("nats://127.0.0.1:4222")},
		Log:      Log{Level: "info", Format: telemetry.FormatAuto},
		Shutdown: config.Duration(30 * time.Second),
	}
	if v, ok := env("NATS_URL"); ok && v != "" {
		s.NATS.URL = config.NewSecret(v)
	}
	if v, ok := env("NATS_CREDS"); ok && v != "" {
		s.NATS.Creds = config.NewText(v)
	}
	return s
}

// Validate checks what the tags cannot say.
func (s *Settings) Validate() []fault.Problem {
	if _, _, err := net.SplitHostPort(s.HTTP); err != nil {
		return []fault.Problem{{Path: "http", What: "this is not an address such as 127.0.0.1:8422"}}
	}
	return nil
}

// Services returns the names of all services. Their variables may be set for every process of a host.
func Services() []string {
	return []string{"coordinator", "cdc-mysql", "cdc-postgres", "edge-ingress", "transform", "sink", "progress", "weir"}
}
