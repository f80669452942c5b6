package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Constants of pulling.
const (
	// pullSlack is added to max_payload: the size the server compares includes subject, reply subject and headers, and
	// a message that does not fit any pull would wait for ever without an error.
	pullSlack = 128 << 10
	// missedHeartbeats before the server counts as silent. Two would be reached by a busy machine alone.
	missedHeartbeats = 3
)

// pace is how long a pull lasts on the server when nothing comes, after which a new one follows, and how often the server says
// meanwhile that it is there.
type pace struct{ expires, heartbeat time.Duration }

// puller reads one pull consumer, with at most one pull outstanding. It is for one goroutine and starts none: the state
// machine runs inside next.
//
// The client library's own iterator asks for what is left of a byte budget and so comes to pulls smaller than one
// message; a count-sized fetch of big messages crosses the server's 64 MiB budget per connection, which drops the client
// and loses what was under way. Here every pull has the full byte size, never less than one message can take.
type puller struct {
	l     *link
	next  string // API subject of the consumer
	s     *session
	inbox string
	sub   *nats.Subscription
	msgs  chan *nats.Msg
	batch int
	bytes int
	timer *time.Timer

	// pace is that of the outstanding or of the next pull: calm instead of brisk once a whole pull has brought nothing.
	pace, brisk, calm pace

	open      bool // a pull is outstanding
	number    uint64
	left      int
	leftBytes int
	received  bool // something came from the outstanding pull
}

// pullRequest is the body of a pull.
type pullRequest struct {
	Batch     int           `json:"batch"`
	MaxBytes  int           `json:"max_bytes"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
}

// errIdle is next's answer to a heartbeat: the consumer is alive and has nothing to deliver.
var errIdle = errors.New("idle")

func newPuller(l *link, stream, consumer string, batch, bytes int, brisk, calm pace) (*puller, error) {
	p := &puller{
		l: l, next: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer,
		batch: batch, bytes: max(bytes, int(l.payload())+pullSlack), pace: brisk, brisk: brisk, calm: calm,
	}
	if err := p.bind(); err != nil {
		return nil, err
	}
	p.timer = time.NewTimer(time.Hour)
	p.timer.Stop()
	return p, nil
}

// bind subscribes on the current session. Messages that the last session brought and nobody has read yet stay in order
// before what this one brings. What it said about its pulls is over: it must not count as a message where lost ones are
// looked for.
func (p *puller) bind() error {
	s, err := p.l.session()
	if err != nil {
		return err
	}
	// One pull's messages and the status messages of an unread one always fit, so that the client never drops any.
	msgs := make(chan *nats.Msg, 2*p.batch+64)
	for len(p.msgs) > 0 {
		if m := <-p.msgs; !isStatus(m) {
			msgs <- m
		}
	}
	inbox := s.nc.NewInbox() + "."
	sub, err := s.subscribe(inbox+"*", msgs)
	if err != nil {
		return err
	}
	p.s, p.msgs, p.inbox, p.sub, p.open = s, msgs, inbox, sub, false
	return nil
}

func (p *puller) close() {
	p.timer.Stop()
	_ = p.sub.Unsubscribe() // fails only when the connection is closed, which ends it as well
}

// fetch returns the next message, or errIdle at a heartbeat, ErrStalled, ErrNotFound for a consumer that is gone,
// ErrNoResponders for one that is gone or that this server of a cluster has not heard of yet, ErrTooBig for a message that no pull can carry, ErrDisconnected, or ctx's error.
func (p *puller) fetch(ctx context.Context) (*nats.Msg, error) {
	for {
		if !p.open {
			if err := p.ask(); err != nil {
				return nil, err
			}
		}
		var m *nats.Msg
		select {
		case m = <-p.msgs:
		default:
			silence := missedHeartbeats * p.pace.heartbeat
			p.timer.Reset(silence)
			select {
			case m = <-p.msgs:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-p.s.life.Done():
				return nil, p.interrupted()
			case <-p.timer.C:
				p.open, p.pace = false, p.brisk
				return nil, fmt.Errorf("%w for %s", ErrStalled, silence)
			}
		}
		if !isStatus(m) {
			p.account(m)
			return m, nil
		}
		if err := p.status(m); err != nil {
			return nil, err
		}
	}
}

// interrupted binds to the next session if there is one, and says ErrStalled, because messages may have been under way;
// without one ErrDisconnected, or ErrClosed. Until it succeeds it is asked again.
func (p *puller) interrupted() error {
	p.open, p.pace = false, p.brisk
	if err := p.bind(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrStalled, errReplaced)
}

// errReplaced: what was delivered into the old connection and has not been received never will be.
var errReplaced = errors.New("connection lost")

func (p *puller) ask() error {
	select {
	case <-p.s.life.Done():
		return p.interrupted()
	default:
	}
	body, err := json.Marshal(pullRequest{Batch: p.batch, MaxBytes: p.bytes, Expires: p.pace.expires, Heartbeat: p.pace.heartbeat})
	if err != nil {
		return err
	}
	p.number++
	reply := p.inbox + strconv.FormatUint(p.number, 36)
	if err := p.s.publish(&nats.Msg{Subject: p.next, Reply: reply, Data: body}); err != nil {
		return err
	}
	p.open, p.received, p.left, p.leftBytes = true, false, p.batch, p.bytes
	return nil
}

// account counts a message against the outstanding pull, by the server's own formula: a pull whose count or bytes are
// used up exactly ends without a status message.
func (p *puller) account(m *nats.Msg) {
	p.received = true
	p.left--
	p.leftBytes -= m.Size()
	if p.left <= 0 || p.leftBytes == 0 {
		p.open, p.pace = false, p.brisk
	}
}

// severed says that the session which p reads has ended: what has not been received will not come.
func (p *puller) severed() bool { return p.s.life.Err() != nil }

// isStatus says that m is about a pull, not a message of the stream.
func isStatus(m *nats.Msg) bool { return m.Reply == "" && m.Header.Get("Status") != "" }

// status handles a message about a pull.
func (p *puller) status(m *nats.Msg) error {
	code, text := m.Header.Get("Status"), m.Header.Get("Description")
	if code == "100" {
		if m.Reply != "" {
			return nil
		}
		return errIdle
	}
	if m.Subject != p.inbox+strconv.FormatUint(p.number, 36) {
		return nil // an earlier pull, given up after a stall
	}
	p.open, p.pace = false, p.brisk
	switch {
	case code == "408", code == "404":
		if !p.received {
			p.pace = p.calm
		}
		return nil
	case code == "503":
		return fmt.Errorf("%w: no consumer answers", ErrNoResponders)
	case code == "409" && strings.Contains(text, "MaxBytes"):
		if !p.received {
			return fmt.Errorf("%w: a message exceeds the pull of %d bytes", ErrTooBig, p.bytes)
		}
		return nil
	case code == "409" && strings.Contains(text, "Consumer Deleted"):
		return fmt.Errorf("%w: consumer deleted", ErrNotFound)
	case code == "409" && (strings.Contains(text, "Leadership Change") || strings.Contains(text, "Server Shutdown")):
		return fmt.Errorf("%w: %s", ErrStalled, strings.ToLower(text))
	}
	return fmt.Errorf("pull refused: %s %s", code, text)
}

// delivery numbers of a message from its reply subject, old and new form:
//
//	$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<nanos>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<nanos>.<pending>[.<random>]
type meta struct {
	delivered, streamSeq, consumerSeq, pending uint64
	time                                       time.Time
}

func parseMeta(reply string) (meta, error) {
	t := strings.Split(reply, ".")
	at := 4
	switch {
	case len(t) == 9:
	case len(t) >= 11:
		at = 6
	default:
		return meta{}, fmt.Errorf("parse acknowledgement subject %q: %d tokens", reply, len(t))
	}
	var n [5]uint64
	for i := range n {
		v, err := strconv.ParseUint(t[at+i], 10, 64)
		if err != nil {
			return meta{}, fmt.Errorf("parse acknowledgement subject %q: %w", reply, err)
		}
		n[i] = v
	}
	return meta{
		delivered: n[0], streamSeq: n[1], consumerSeq: n[2], time: time.Unix(0, int64(n[3])).UTC(), pending: n[4],
	}, nil
}
