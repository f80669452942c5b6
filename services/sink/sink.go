package sink

import (
	"go.opentelemetry.io/otel/metric"

	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/blackhole"
	"weir.dev/weir/services/sink/internal/files"
	"weir.dev/weir/services/sink/internal/iceberg"
	"weir.dev/weir/services/sink/internal/mysql"
	"weir.dev/weir/services/sink/internal/nats"
	"weir.dev/weir/services/sink/internal/postgres"
)

// Connectors are the sinks of this build by the type that a job spec names. What they commit is measured by meter.
func Connectors(meter metric.Meter) (map[string]sink.Connector, error) {
	m, err := newMetrics(meter)
	if err != nil {
		return nil, err
	}
	return map[string]sink.Connector{
		"postgres":  measured{postgres.Connector{}, m},
		"mysql":     measured{mysql.Connector{}, m},
		"files":     measured{files.Connector{}, m},
		"iceberg":   measured{iceberg.Connector{}, m},
		"nats":      measured{nats.Connector{}, m},
		"blackhole": measured{blackhole.Connector{}, m},
	}, nil
}
