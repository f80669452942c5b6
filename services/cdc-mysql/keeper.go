package cdcmysql

import (
	"context"
	"sync"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
)

// relistInterval is the pause between two looks for tables that were made later.
const relistInterval = 15 * time.Second

// keeper looks after the server beside the enumerator's loop. What it cannot reach it tries again.
type keeper struct {
	*opened

	state enumeratorState
	mu    sync.Mutex
	other []skippedTable
}

func newKeeper(s *setup) *keeper { return &keeper{opened: s.opened, state: s.state, other: s.skipped} }

func (k *keeper) run(ctx context.Context) error {
	s := sql{target: k.target}
	defer s.close()
	tick := time.NewTicker(relistInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := k.look(ctx, &s)
		switch {
		case err == nil || ctx.Err() != nil:
		case fault.ClassOf(err) == fault.Permanent:
			return err
		default:
			k.cfg.Logger.WarnContext(ctx, "source not looked after", telemetry.Err(err))
			s.close()
		}
	}
}

// look finds tables that match and are not captured.
func (k *keeper) look(ctx context.Context, s *sql) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	session, err := s.open(ctx)
	if err != nil {
		return err
	}
	all, err := catalog.List(ctx, session)
	if err != nil {
		return err
	}
	other := k.outside(all, k.state.Tables)
	k.mu.Lock()
	k.other = other
	k.mu.Unlock()
	return nil
}

// tables lists the tables that match and are not captured, with the reason.
func (k *keeper) tables() []report.Table {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []report.Table
	for _, t := range k.other {
		all = append(all, report.Table{Name: t.name.String(), Lifecycle: report.Unknown, Note: t.why})
	}
	return all
}
