package notify

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/progress/internal/view"
)

// The paces of a notifier.
const (
	interval = time.Second
	// hold is how long an instance sends alone after it has written. It is longer than a post and a turn together.
	hold = 2*patience + 10*time.Second
	// settle is how long a finding has to be there, or gone, before it is told: what comes and goes alone is not. What is told then is
	// all that is found at that moment, so that one that lasts never waits for others that do not.
	settle = 5 * time.Second
	// The pauses after a failed post.
	firstPause, longestPause = time.Second, 5 * time.Minute
)

// Poster sends an event once.
type Poster interface {
	Post(ctx context.Context, e *Event) error
}

// Config is what a notifier needs.
type Config struct {
	// Name is the instance's own, another one for each run of it.
	Name  string
	Conn  *bus.Conn
	Board *view.Board
	To    Poster
	Log   *slog.Logger
}

// Notifier tells. It is one goroutine.
type Notifier struct {
	cfg Config
	box box
	// from is when what is told begins, for the first who tells.
	from    time.Time
	heard   []bus.Entry
	seen    map[string]unlike
	retryAt time.Time
	pause   time.Duration
}

// unlike has since when findings of a job are other than was told: there or gone.
type unlike map[string]time.Time

// New opens the outbox.
func New(ctx context.Context, cfg Config) (*Notifier, error) {
	b, err := cfg.Conn.Bucket(ctx, bus.ProgressBucket)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", bus.ProgressBucket, err)
	}
	n := &Notifier{cfg: cfg, box: box{bucket: b}, seen: make(map[string]unlike), pause: firstPause}
	o, err := n.box.load(ctx)
	if err != nil {
		return nil, err
	}
	if n.from = o.At; n.from.IsZero() {
		n.from = time.Now() // what was told before anybody asked for it is not told
	}
	return n, nil
}

// Run tells until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	w := n.cfg.Conn.WatchEvents(ctx, "*", n.from)
	defer w.Close()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for complained := false; ; {
		updates := w.Updates()
		if len(n.heard) >= mostEvents {
			updates = nil // N3
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case u, ok := <-updates:
			if !ok {
				return context.Cause(ctx)
			}
			if u.Kind == bus.Put {
				n.hear(u.Entry)
			}
		case <-tick.C:
			err := n.turn(ctx)
			if err != nil && ctx.Err() == nil && !complained {
				n.cfg.Log.WarnContext(ctx, "events are not told", telemetry.Err(err))
			}
			complained = err != nil
		}
	}
}

// hear takes a notice in; after a lost connection they come again.
func (n *Notifier) hear(e bus.Entry) {
	for i := range n.heard {
		if n.heard[i].Revision == e.Revision && n.heard[i].Time.Equal(e.Time) {
			return
		}
	}
	n.heard = append(n.heard, e)
}

// turn takes in what is new and sends what is pending, if it is this instance's turn. An error of the receiver is one of the turn.
func (n *Notifier) turn(ctx context.Context) error {
	o, err := n.box.load(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	if n.box.revision == 0 {
		o.At = n.from
	}
	if o.Holder != n.cfg.Name && now.Before(o.Until) {
		n.forget(&o)
		return nil
	}
	changed := n.takeNotices(&o)
	if v, _, err := n.cfg.Board.Now(); err == nil {
		changed = n.takeView(&o, &v, now) || changed
	}
	if changed || o.Holder != n.cfg.Name || o.Until.Sub(now) < hold/2 {
		if err := n.save(ctx, &o); err != nil {
			return err
		}
	}
	n.forget(&o)
	return n.send(ctx, &o)
}

// save renews the hold. That another instance was faster is no error: it is its turn.
func (n *Notifier) save(ctx context.Context, o *outbox) error {
	o.Holder, o.Until = n.cfg.Name, time.Now().Add(hold)
	return n.box.save(ctx, o)
}

// forget drops the notices that are taken in, by whichever instance.
func (n *Notifier) forget(o *outbox) {
	rest := n.heard[:0]
	for i := range n.heard {
		if !o.knows(&n.heard[i]) {
			rest = append(rest, n.heard[i])
		}
	}
	n.heard = rest
}

func (n *Notifier) takeNotices(o *outbox) (changed bool) {
	size := weight(o.Pending)
	for i := range n.heard {
		e := &n.heard[i]
		if o.knows(e) {
			continue
		}
		if o.full() || size+len(e.Value) > mostBytes {
			return changed
		}
		size += len(e.Value)
		if ev, ok := noticed(e); ok {
			o.add(ev)
		}
		o.Mark, o.At, changed = e.Revision, e.Time, true
	}
	return changed
}

func (n *Notifier) takeView(o *outbox, v *view.View, now time.Time) (changed bool) {
	there := make(map[string]bool, len(v.Jobs))
	for i := range v.Jobs {
		j := &v.Jobs[i]
		there[j.Job] = true
		known, ok := o.Jobs[j.Job]
		next := known.of(j)
		changed = changed || !ok || next.Life != known.Life || next.Fence != known.Fence
		var events []Event
		if !next.CaughtUp && level(j) {
			next.CaughtUp = true
			events = append(events, event(CaughtUp, j, v.At))
		}
		if n.settled(j.Job, next.Why, why(j), now) {
			next.Why = why(j)
			events = append(events, event(Why, j, v.At))
		}
		if len(events) > 0 && (o.full() || weight(o.Pending)+weight(events) > mostBytes) {
			continue // it is told when there is room
		}
		for _, ev := range events {
			o.add(ev)
		}
		o.Jobs[j.Job], changed = next, changed || len(events) > 0
	}
	for name := range o.Jobs {
		if !there[name] {
			delete(o.Jobs, name)
			delete(n.seen, name)
			changed = true
		}
	}
	return changed
}

// settled reports whether what keeps a job from moving is other than was told, and has been so for long enough.
func (n *Notifier) settled(name string, told, is []string, now time.Time) bool {
	before, differs, over := n.seen[name], make(unlike), false
	see := func(found, among []string) {
		for _, f := range found {
			if slices.Contains(among, f) {
				continue
			}
			since, ok := before[f]
			if !ok {
				since = now
			}
			differs[f] = since
			over = over || now.Sub(since) >= settle
		}
	}
	see(told, is)
	see(is, told)
	n.seen[name] = differs
	return over
}

// send posts what is pending, oldest first, until one fails.
func (n *Notifier) send(ctx context.Context, o *outbox) error {
	for len(o.Pending) > 0 {
		if time.Now().Before(n.retryAt) {
			return nil
		}
		if err := n.cfg.To.Post(ctx, &o.Pending[0]); err != nil {
			n.retryAt = time.Now().Add(n.pause)
			n.pause = min(2*n.pause, longestPause)
			if fault.ClassOf(err) != fault.Transient {
				n.pause = longestPause // somebody has to look
			}
			return err
		}
		n.pause = firstPause
		o.Pending = o.Pending[1:]
		if err := n.save(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (o *outbox) add(e Event) {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	e.ID = hex.EncodeToString(b[:])
	o.Pending = append(o.Pending, e)
}

// weight is about how many bytes events take.
func weight(events []Event) int {
	body, err := json.Marshal(events)
	if err != nil {
		return mostBytes
	}
	return len(body)
}
