package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// link is one NATS connection and the knowledge of when it was interrupted.
type link struct {
	nc *nats.Conn
	js jetstream.JetStream

	mu      sync.Mutex
	broken  chan struct{}
	pending map[*operation]struct{}
}

// operation is a request under way; its context ends with the connection that carries it.
type operation struct{ cancel context.CancelCauseFunc }

func newLink() *link {
	return &link{broken: make(chan struct{}), pending: make(map[*operation]struct{})}
}

func (l *link) bind(nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	l.nc, l.js = nc, js
	return nil
}

// unbroken returns a channel that is closed at the next loss of the connection. Whatever was under way then, in either
// direction, may be lost.
func (l *link) unbroken() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

func (l *link) breakNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.broken)
	l.broken = make(chan struct{})
	for op := range l.pending {
		op.cancel(errBroken)
	}
}

// errBroken ends the requests that were under way when the connection was lost.
var errBroken = fmt.Errorf("%w: connection lost", ErrUnknown)

// begin bounds a request by opTimeout and by the life of the connection; the client library alone would let it wait for
// an answer that went down with the connection.
func (l *link) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithTimeout(ctx, opTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	op := &operation{cancel}
	l.mu.Lock()
	l.pending[op] = struct{}{}
	l.mu.Unlock()
	return ctx, func() {
		l.mu.Lock()
		delete(l.pending, op)
		l.mu.Unlock()
		cancel(nil)
		stop()
	}
}

func (l *link) close() {
	if l.nc != nil {
		l.nc.Close()
	}
}

// request asks the JetStream API and decodes the answer into resp. No reply in time is ErrUnknown.
func (l *link) request(ctx context.Context, subject string, req, resp any) error {
	ctx, cancel := l.begin(ctx)
	defer cancel()
	var body []byte
	if req != nil {
		var err error
		if body, err = json.Marshal(req); err != nil {
			return err
		}
	}
	m, err := l.nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return foreign(err)
	}
	var refusal struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return fmt.Errorf("decode answer of %s: %w", subject, err)
	}
	if refusal.Error != nil {
		return foreign(refusal.Error)
	}
	if resp == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("decode answer of %s: %w", subject, err)
	}
	return nil
}

// store publishes one message into a stream and waits for its acknowledgement. Retries of the client library are off:
// it would repeat a message whose first copy may be stored. It returns the stream sequence.
func (l *link) store(ctx context.Context, m *nats.Msg) (uint64, error) {
	ctx, cancel := l.begin(ctx)
	defer cancel()
	if int64(len(m.Data))+headerSize(Header(m.Header)) > l.nc.MaxPayload() {
		return 0, fmt.Errorf("%w: %d bytes for %s", ErrTooBig, len(m.Data), m.Subject)
	}
	r, err := l.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, foreign(err)
	}
	return parsePubAck(r)
}

// parsePubAck reads the stream's answer to a publish.
func parsePubAck(m *nats.Msg) (uint64, error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return 0, ErrNoResponders
	}
	var ack struct {
		Error  *jetstream.APIError `json:"error"`
		Stream string              `json:"stream"`
		Seq    uint64              `json:"seq"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return 0, fmt.Errorf("%w: decode publish acknowledgement: %w", ErrUnknown, err)
	}
	if ack.Error != nil {
		return 0, foreign(ack.Error)
	}
	if ack.Stream == "" {
		return 0, fmt.Errorf("%w: publish acknowledgement names no stream", ErrUnknown)
	}
	return ack.Seq, nil
}

// jitter is a random duration in [0, d).
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// denials remembers which subjects the server refused, because the refusal arrives apart from the request.
type denials struct {
	mu    sync.Mutex
	seen  map[string]struct{}
	hooks map[*Publisher]struct{}
}

func (d *denials) add(subject string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = make(map[string]struct{})
	}
	d.seen[subject] = struct{}{}
	for p := range d.hooks {
		p.onDenied(subject)
	}
}

func (d *denials) watch(p *Publisher) (cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hooks == nil {
		d.hooks = make(map[*Publisher]struct{})
	}
	d.hooks[p] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.hooks, p)
	}
}

// explain replaces "unknown" by "denied" when the server has refused one of the subjects of the request.
func (d *denials) explain(err error, subjects ...string) error {
	if !errors.Is(err, ErrUnknown) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range subjects {
		if _, ok := d.seen[s]; ok {
			return fmt.Errorf("%w: %s: %w", ErrDenied, s, err)
		}
	}
	return err
}
