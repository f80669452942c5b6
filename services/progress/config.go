package progress

import (
	"time"

	"weir.dev/weir/pkg/config"
)

// Config is what a progress service can be told.
type Config struct {
	// Token is what a request must carry; without one everybody who reaches the address may read. Set it when --http is not a
	// loopback address.
	Token config.Secret `yaml:"token" doc:"Bearer token that requests must carry; none when empty."`
	// Webhook is where events are posted; it may hold a token. Set it when nobody looks at alerts.
	Webhook config.Secret `yaml:"webhook" doc:"Address that events of jobs are posted to; none when empty."`
	// WebhookSecret is shared with the receiver, which knows by the signature that an event is ours.
	WebhookSecret config.Secret `yaml:"webhook_secret" doc:"Secret that signs posted events; unsigned when empty."`
	// Interval is how often jobs are looked at. Nodes report each second, so that less shows nothing new.
	Interval config.Duration `yaml:"interval" min:"100ms" max:"1m" doc:"Time between looks at the jobs."`
}

// Default looks each second and asks for no token.
func Default() Config { return Config{Interval: config.Duration(time.Second)} }
