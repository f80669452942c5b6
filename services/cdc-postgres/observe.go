package cdcpostgres

import (
	"context"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

const (
	// observeInterval is the pause between two looks at the head of the log; more often tells nothing new.
	observeInterval = 2 * time.Second
	// calmObserve is the pause while no rows come and no epoch passes.
	calmObserve = 10 * time.Second
	// wantedObserve is the pause when somebody waits for a look.
	wantedObserve = 100 * time.Millisecond
)

// observe looks at the end of the log and at the slot, for people only, and finds the end a drain asks for. What it
// cannot find out it tries again.
func (l *link) observe(ctx context.Context) {
	o := observer{link: l, sql: session{target: l.target}}
	defer o.sql.close(ctx)
	for {
		looked := time.Now()
		if err := o.look(ctx); err != nil && ctx.Err() == nil {
			l.log.WarnContext(ctx, "source head not observed", telemetry.Err(err))
			o.sql.close(ctx)
			if pgrepl.ShuttingDown(err) && o.goingDown(ctx) {
				// The server waits for its walsenders to be confirmed before it stops. We do not know when that will
				// be, so we leave; what was not confirmed is kept.
				l.queue.Fail(fault.New(fault.PGDisconnected, l.target.Where(), "the server is shutting down"))
				l.cancel()
				return
			}
		}
		n := l.progress.count()
		calm := o.seen && n == o.rows
		o.rows, o.seen = n, true
		if !o.rest(ctx, looked, calm) {
			return
		}
	}
}

// rest waits until the next look is due; false when ctx has ended.
func (o *observer) rest(ctx context.Context, looked time.Time, calm bool) bool {
	pause := observeInterval // since the last look
	if calm {
		pause = untilTick(looked, calmObserve)
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-o.link.end.ask:
			return true
		case <-time.After(pause - time.Since(looked)):
			return true
		case <-o.link.glance:
			pause = min(pause, observeInterval)
		case <-o.link.looks.Wanted():
			pause = wantedObserve
		}
	}
}

type observer struct {
	link *link
	sql  session
	rows uint64 // emitted at the last look
	seen bool   // rows is of the look before
}

func (o *observer) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := o.sql.open(ctx)
	if err != nil {
		return err
	}
	l := o.link
	missing := l.end.missing() // before the head is read: an end that lies before the question would leave rows out
	asked, after := time.Now(), l.looks.Passed()
	head, err := l.target.Head(ctx, conn, l.source.Slot)
	if err != nil {
		return err
	}
	l.progress.observe(ctx, asked, after, head)
	if err := l.remade.look(ctx, conn, l.source.Tables); err != nil {
		return err
	}
	if !missing {
		return nil
	}
	// The message makes the log go on behind the end, so that passing it can be seen.
	if _, err := l.target.Heartbeat(ctx, conn); err != nil {
		return err
	}
	l.end.fix(head.LSN)
	return nil
}

// goingDown tells the end of the server from the end of one session.
func (o *observer) goingDown(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := o.sql.open(ctx)
	return err != nil
}
