package sink

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/postgres"
)

// ReadLedger reads the commits that a sink's target remembers of a job, oldest first, for audits. It changes nothing. A
// sink whose ledger cannot be read from outside its service gives nil; one that has committed nothing yet gives an
// empty slice. The sink's references are resolved by lookup.
func ReadLedger(ctx context.Context, job string, s spec.Sink, lookup config.Lookup) ([]epoch.LedgerEntry, error) {
	pg, ok := s.Config.(*spec.PostgresSink)
	if !ok {
		return nil, nil
	}
	url, err := pg.URL.Resolve(lookup)
	if err != nil {
		return nil, fmt.Errorf("sinks.%s.url: %w", s.Name, err)
	}
	l, err := postgres.ReadLedger(ctx, url, pg.Schema, job, s.Name)
	if err != nil {
		return nil, err
	}
	log := make([]epoch.LedgerEntry, 0, len(l.Log))
	for _, e := range l.Log {
		log = append(log, epoch.LedgerEntry{Ref: e.Ref, Prev: e.Prev, Rows: e.Rows})
	}
	return log, nil
}
