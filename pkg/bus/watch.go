package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// UpdateKind says what an [Update] tells.
type UpdateKind uint8

const (
	// Put: a value was stored.
	Put UpdateKind = iota + 1
	// Deleted: somebody removed the value.
	Deleted
	// Expired: the value reached the bucket's age, such as a lease that was not renewed.
	Expired
	// CaughtUp: everything that was stored when the watch was opened has been delivered. Once per opening.
	CaughtUp
	// Resync: changes may have been missed. Forget what the watch has told; all current values follow, then CaughtUp.
	Resync
)

// String is the word for logs.
func (k UpdateKind) String() string {
	switch k {
	case Put:
		return "put"
	case Deleted:
		return "deleted"
	case Expired:
		return "expired"
	case CaughtUp:
		return "caught up"
	case Resync:
		return "resync"
	}
	return "unknown"
}

// Update is one step of a watch.
type Update struct {
	Kind UpdateKind
	// Entry is set for Put, Deleted and Expired; the latter two have no value.
	Entry Entry
	// Err is the reason of a Resync.
	Err error
}

// Watch follows the messages of a stream that match a filter. It is never silently stale: after a lost connection, three
// missed heartbeats (3 s), a gap in the delivery, or a stream that was made anew, it says [Resync] and starts again from
// the beginning. It never resumes: on a stream that was made anew "after sequence n" skips as many messages as the lost
// stream had held.
type Watch struct {
	updates chan Update
	cancel  context.CancelFunc
	done    chan struct{}
}

// Updates is closed when the watch ends: by Close, the end of its context, or the end of the connection. A reader that
// is slow slows only its own watch.
func (w *Watch) Updates() <-chan Update { return w.updates }

// Close ends the watch and waits until it is gone.
func (w *Watch) Close() {
	w.cancel()
	<-w.done
}

// watchSpec is what a watch reads and how.
type watchSpec struct {
	stream, filter string
	prefix         string // taken off the subject to make the key
	lastOnly       bool   // begin with the last message per subject
	since          time.Time
	headersOnly    bool
}

const (
	watchBatch     = 256
	watchHeartbeat = time.Second
	watchExpiry    = 30 * time.Second
	// watchIdle is when the server removes a watch's consumer that nobody pulls from.
	watchIdle = 30 * time.Second
)

func (c *Conn) watch(ctx context.Context, spec watchSpec) *Watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{updates: make(chan Update, 64), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer cancel()
		defer close(w.updates)
		for attempt := 1; ; attempt++ {
			opened, err := c.watchOnce(ctx, spec, w.updates)
			if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				return
			}
			if opened {
				attempt = 1
				c.log.DebugContext(ctx, "watch starts again", "stream", spec.stream, "filter", spec.filter, "error", err.Error())
			} else if attempt == 5 {
				c.log.WarnContext(ctx, "watch cannot be opened", "stream", spec.stream, "filter", spec.filter, "error", err.Error())
			}
			if !deliver(ctx, w.updates, Update{Kind: Resync, Err: err}) || !pause(ctx, reconnectDelay(attempt)) {
				return
			}
		}
	}()
	return w
}

func deliver(ctx context.Context, to chan<- Update, u Update) bool {
	select {
	case to <- u:
		return true
	case <-ctx.Done():
		return false
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// watchOnce opens a consumer and delivers until something makes its view doubtful.
func (c *Conn) watchOnce(ctx context.Context, spec watchSpec, to chan<- Update) (opened bool, err error) {
	l, name := c.ctl, "weir-watch-"+strconv.FormatUint(rand.Uint64(), 36)
	steady := pace{expires: watchExpiry, heartbeat: watchHeartbeat}
	p, err := newPuller(l, spec.stream, name, watchBatch, 0, steady, steady)
	if err != nil {
		return false, err
	}
	defer p.close()
	pending, err := c.createWatcher(ctx, spec, name)
	if err != nil {
		return false, err
	}
	// Nobody waits for the answer; when it is lost the server removes the consumer after watchIdle.
	defer func() { _ = l.publish("$JS.API.CONSUMER.DELETE."+spec.stream+"."+name, "", nil) }()

	caughtUp := false
	reached := func() bool {
		if caughtUp {
			return true
		}
		caughtUp = true
		return deliver(ctx, to, Update{Kind: CaughtUp})
	}
	if pending == 0 && !reached() {
		return true, ctx.Err()
	}
	var last uint64
	for {
		m, err := p.fetch(ctx)
		if errors.Is(err, errIdle) {
			// Nothing is left to deliver: the last pending messages may have been removed before their turn.
			if !reached() {
				return true, ctx.Err()
			}
			continue
		}
		if err != nil {
			return true, err
		}
		md, err := parseMeta(m.Reply)
		if err != nil {
			return true, err
		}
		if md.consumerSeq != last+1 {
			return true, fmt.Errorf("%w: delivery %d follows %d", ErrStalled, md.consumerSeq, last)
		}
		last = md.consumerSeq
		u := Update{Kind: removal(m.Header), Entry: Entry{
			Key: strings.TrimPrefix(m.Subject, spec.prefix), Value: m.Data, Header: Header(m.Header),
			Revision: md.streamSeq, Time: md.time,
		}}
		if u.Kind != Put {
			u.Entry.Value = nil
		}
		if !deliver(ctx, to, u) {
			return true, ctx.Err()
		}
		if md.pending == 0 && !reached() {
			return true, ctx.Err()
		}
	}
}

// createWatcher makes the consumer of a watch and returns how many messages it will deliver to begin with.
func (c *Conn) createWatcher(ctx context.Context, spec watchSpec, name string) (pending uint64, err error) {
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		Name: name, Description: "Weir: watch of " + c.opts.Name, FilterSubject: spec.filter,
		AckPolicy: jetstream.AckNonePolicy, MaxDeliver: 1, MemoryStorage: true, Replicas: 1,
		InactiveThreshold: watchIdle, HeadersOnly: spec.headersOnly,
		Metadata: map[string]string{metaRole: roleWatch, metaClient: c.opts.Name},
	}
	switch {
	case spec.lastOnly:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	case !spec.since.IsZero():
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &spec.since
	}
	cons, err := s.js.CreateConsumer(ctx, spec.stream, cfg)
	if err != nil {
		return 0, c.denied.explain(foreign(err), "$JS.API.CONSUMER.CREATE."+spec.stream+"."+name+"."+spec.filter)
	}
	return cons.CachedInfo().NumPending, nil
}

// collect reads what a watch would begin with and returns it sorted by key.
func (c *Conn) collect(ctx context.Context, spec watchSpec) ([]Entry, error) {
	found := make(map[string]Entry)
	err := c.beginning(ctx, spec, func(u Update) {
		switch u.Kind {
		case Put:
			found[u.Entry.Key] = u.Entry
		case Deleted, Expired:
			delete(found, u.Entry.Key)
		case CaughtUp, Resync:
		}
	})
	if err != nil {
		return nil, err
	}
	es := make([]Entry, 0, len(found))
	for _, e := range found {
		es = append(es, e)
	}
	sortEntries(es)
	return es, nil
}

// beginning hands over what a watch would begin with. It fails when the watch does; it does not start again.
func (c *Conn) beginning(ctx context.Context, spec watchSpec, take func(Update)) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	updates := make(chan Update, watchBatch)
	var failure error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, failure = c.watchOnce(ctx, spec, updates)
	}()
	for {
		select {
		case u := <-updates:
			if u.Kind == CaughtUp {
				cancel()
				<-ended
				return nil
			}
			take(u)
		case <-ended:
			return foreign(failure)
		}
	}
}
