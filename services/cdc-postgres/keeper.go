package cdcpostgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/telemetry"
)

const (
	// quiet is how much log others must have written for a heartbeat to be worth it: on a server where nothing happens
	// the heartbeats would be the only thing that happens, those of one job a reason for those of another. It is little
	// beside the 16 MiB of a segment, by which a server keeps its log.
	quiet = 256 << 10
	// relistInterval is the pause between two looks for tables that were made later.
	relistInterval = 15 * time.Second
)

// keeper is the enumerator's side towards the server: heartbeats, the health of the slot, old slots, new tables. What
// it cannot reach it tries again; only a slot that is gone or lost ends it.
type keeper struct {
	*setup
	durable chan struct{} // holds a token when an epoch has become durable

	clean    bool         // nothing of earlier states is left: slots of other attempts, published tables
	beat     position.LSN // the end of our last heartbeat
	relisted time.Time

	mu      sync.Mutex
	outside []skippedTable
}

func newKeeper(s *setup) *keeper {
	k := &keeper{
		setup: s, outside: s.skipped, relisted: time.Now(), durable: make(chan struct{}, 1),
	}
	if s.restored && !s.news { // an epoch that has the state is durable
		k.durable <- struct{}{}
	}
	return k
}

// run looks after the server until ctx ends, or until nothing can be done any more.
func (k *keeper) run(ctx context.Context) error {
	sql := session{target: k.target}
	defer sql.close(ctx)
	var dropOld bool
	timer := time.NewTicker(k.source.Heartbeat.Std())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.durable:
			if k.clean {
				continue
			}
			dropOld = true
		case <-timer.C:
		}
		err := k.step(ctx, &sql, dropOld && !k.clean)
		switch {
		case err == nil || ctx.Err() != nil:
		case fault.ClassOf(err) == fault.Permanent:
			return err
		default:
			k.cfg.Logger.WarnContext(ctx, "source not looked after", telemetry.Err(err))
			sql.close(ctx)
		}
	}
}

// step looks at the slot, and does what is due.
func (k *keeper) step(ctx context.Context, sql *session, dropOld bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := sql.open(ctx)
	if err != nil {
		return err
	}
	s := setup{opened: k.opened, conn: conn, server: k.server, state: k.state}
	if dropOld {
		if err := s.dropOlder(ctx); err != nil {
			return err
		}
		if err := s.narrow(ctx); err != nil {
			return err
		}
		k.clean = true
	}
	if err := k.heartbeat(ctx, conn); err != nil {
		return err
	}
	if time.Since(k.relisted) < relistInterval {
		return nil
	}
	skipped, err := s.compare(ctx)
	if err != nil {
		return err
	}
	k.relisted = time.Now()
	k.mu.Lock()
	k.outside = skipped
	k.mu.Unlock()
	return nil
}

// heartbeat keeps the log moving, so that the slot follows on a server where the captured tables are quiet.
func (k *keeper) heartbeat(ctx context.Context, conn *pgx.Conn) error {
	head, err := k.target.Head(ctx, conn, k.state.Slot)
	if err != nil {
		return err
	}
	if !head.SlotOK {
		return fault.New(fault.PGSlotMissing, k.where, fmt.Sprintf("slot %q was dropped while the job ran", k.state.Slot), "slot", k.state.Slot, "job", k.cfg.Job)
	}
	if err := k.target.CheckUsable(head.Slot); err != nil {
		return err
	}
	if head.LSN < k.beat+quiet {
		return nil
	}
	k.beat, err = k.target.Heartbeat(ctx, conn)
	return err
}

// tables lists the tables that match and are not captured, with the reason.
func (k *keeper) tables() []report.Table {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]report.Table, len(k.outside))
	for i, t := range k.outside {
		all[i] = report.Table{Name: t.name.String(), Lifecycle: report.Unknown, Note: t.why}
	}
	return all
}
