package halves

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
)

// deafPlanner does not answer until some time has passed.
type deafPlanner struct {
	until  time.Time
	err    error
	resets int
}

func (p *deafPlanner) Bounds(context.Context, cdc.AskBounds) ([]cdc.Key, bool, error) {
	return nil, true, p.Settle(context.Background())
}

func (p *deafPlanner) Settle(context.Context) error {
	if time.Now().Before(p.until) {
		return p.err
	}
	return nil
}

func (p *deafPlanner) Reset(context.Context) { p.resets++ }

// A server that is away for a moment is asked again; one that is away for longer ends the attempt, since a job that only
// waits says to nobody what for.
func TestDeskGivesUp(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.SrcUnreachable, "sources.db", "connection refused")
	for _, tt := range []struct {
		name   string
		err    error
		away   time.Duration
		want   error
		within time.Duration
	}{
		{"it is there", away, 0, nil, 0},
		{"a moment", away, 2 * pause, nil, 2 * pause},
		{"for good", away, time.Hour, away, patience},
		{"another fault", fault.Bug, time.Hour, fault.Bug, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				p := &deafPlanner{until: began.Add(tt.away), err: tt.err}
				d := newDesk(p, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() { defer close(over); d.run(ctx) }()
				d.ask(cdc.AskBounds{Table: 1, Max: 1})
				<-d.news
				answers, err := d.take()
				if took := time.Since(began); took != tt.within || !errors.Is(err, tt.want) || (err == nil) != (len(answers) == 1) {
					t.Errorf("after %s: %d answers, %v; want %v after %s", took, len(answers), err, tt.want, tt.within)
				}
				if want := int(tt.within / pause); p.resets != want {
					t.Errorf("%d resets, want %d", p.resets, want)
				}
				cancel()
				<-over
			})
		})
	}
}
