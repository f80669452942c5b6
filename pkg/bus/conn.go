package bus

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"weir.dev/weir/pkg/fault"
)

// A server that is silent for pingEvery times pingsOpen + 1 is given up. That leaves half of a cluster's lease to renew it
// by way of another server.
const (
	pingEvery = 2 * time.Second
	pingsOpen = 2
)

// opTimeout bounds a request whose context has no earlier deadline.
const opTimeout = 5 * time.Second

// Options says where the bus is and who is connecting.
type Options struct {
	// URL is one server or several, separated by commas. Ignored with InProcess.
	URL string
	// Name is the service, shown in the server's connection list. It is also the default of the inbox prefix.
	Name string
	// Creds is the path of a credentials file, NKey that of a seed file; at most one of them. Optional.
	Creds, NKey string
	// TLS is required where the server demands it. Optional.
	TLS *tls.Config
	// InProcess connects without a socket to a server in this process. Optional.
	InProcess interface {
		InProcessConn() (net.Conn, error)
	}
	// InboxPrefix is the subject prefix of replies, for which this user alone may subscribe; anybody who can subscribe
	// to it reads this service's replies. Empty means "_INBOX.<name>".
	InboxPrefix string
	// Logger receives lost and regained connections and denied subjects. Optional.
	Logger *slog.Logger
}

// Conn is a service's access to the bus. It holds one NATS connection for control (buckets, facts, watches, liveness)
// and opens further ones for data as needed, because a pull of big messages fills a connection's outbound budget on the
// server (64 MiB; beyond it the server drops the client). It is safe for concurrent use.
type Conn struct {
	opts Options
	log  *slog.Logger
	ctl  *link

	// dialling is held by whoever dials a lane, so that one lane serves all who wait for it. It is no mutex, because a
	// dial may take long: who waits for it must be able to give up, and giving a place back must not wait at all.
	dialling  chan struct{}
	lanes     sync.Mutex
	closed    bool
	receiving []*lane
	sending   []*lane

	mu       sync.Mutex
	hooks    map[int]func()
	nextHook int

	denied denials
}

// lane is a data connection and the number of users it has.
type lane struct {
	l     *link
	users int
}

// Sharing of data connections. Receivers: 6 pulls of max_payload + 128 KiB stay below the server's 64 MiB per client.
// Publishers: the connection's lock is held while a payload is copied to the socket.
const (
	receiversPerLane  = 6
	publishersPerLane = 8
)

// Connect opens the control connection and waits until the server has answered, but not longer than ctx allows.
// Afterwards connections are kept alive for ever: a lost one is reopened with jittered backoff until Close.
func Connect(ctx context.Context, opts Options) (*Conn, error) {
	c := &Conn{opts: opts, log: opts.Logger, hooks: make(map[int]func()), dialling: make(chan struct{}, 1)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.opts.InboxPrefix == "" && c.opts.Name != "" {
		c.opts.InboxPrefix = "_INBOX." + EscapeToken(c.opts.Name)
	}
	ctl, err := c.dial(ctx, "control", c.runHooks)
	if err != nil {
		return nil, fault.Wrap(fmt.Errorf("connect to NATS: %w", foreign(err)), connectCode(err), opts.Name, err.Error(),
			"url", c.where())
	}
	c.ctl = ctl
	return c, nil
}

func connectCode(err error) fault.Code {
	if strings.Contains(strings.ToLower(err.Error()), "authorization") {
		return fault.BusAuth
	}
	return fault.BusUnreachable
}

// where names the servers without the credentials that an address may hold.
func (c *Conn) where() string {
	if c.opts.InProcess != nil {
		return "this process"
	}
	servers := strings.Split(c.opts.URL, ",")
	for i, s := range servers {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil {
			return "the configured address"
		}
		u.User = nil
		servers[i] = u.String()
	}
	return strings.Join(servers, ",")
}

// Close closes all connections. Publishers, receivers and watches end with [ErrClosed]; a publisher with messages under
// way ends with [ErrUnknown]. It may be called twice.
func (c *Conn) Close() {
	c.lanes.Lock()
	c.closed = true
	lanes := append(c.receiving, c.sending...)
	c.receiving, c.sending = nil, nil
	c.lanes.Unlock()
	for _, ln := range lanes {
		ln.l.close()
	}
	c.ctl.close()
}

// MinPayload is the smallest max_payload that Weir can work with, the default of NATS: what does not fit goes in parts or
// is stored beside, but a manifest (up to 256 KiB) and an ack, which names the pieces of the skipped epochs before it again,
// inline ones with their content, are one message each.
const MinPayload = 1 << 20

// MaxPayload is the server's max_payload in bytes; it bounds headers and data of one message together.
func (c *Conn) MaxPayload() int64 { return c.ctl.payload() }

// ServerID is the id of the server the control connection is on; empty while disconnected. A restarted server has
// another id.
func (c *Conn) ServerID() string {
	s, err := c.ctl.session()
	if err != nil {
		return ""
	}
	return s.nc.ConnectedServerId()
}

// ServerVersion is the version of the server the control connection is on, such as "2.15.2"; empty while disconnected.
func (c *Conn) ServerVersion() string {
	s, err := c.ctl.session()
	if err != nil {
		return ""
	}
	return s.nc.ConnectedServerVersion()
}

// Connected reports whether the control connection is up, as far as is known.
func (c *Conn) Connected() bool {
	_, err := c.ctl.session()
	return err == nil
}

// OnReconnect registers f to be called in its own goroutine each time the control connection is back, and returns the
// function that takes it off again. After a reconnect memory streams may be gone and watches start anew.
func (c *Conn) OnReconnect(f func()) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextHook
	c.nextHook++
	c.hooks[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.hooks, id)
	}
}

func (c *Conn) runHooks() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.hooks {
		go f()
	}
}

// dial opens a link of the given purpose.
func (c *Conn) dial(ctx context.Context, purpose string, back func()) (*link, error) {
	log := c.log.With("connection", purpose)
	return newLink(ctx, func(ctx context.Context, closed nats.ConnHandler) (*nats.Conn, error) {
		return c.connect(ctx, purpose, log, closed)
	}, log, back)
}

// connect opens one NATS connection, which is never reconnected.
func (c *Conn) connect(ctx context.Context, purpose string, log *slog.Logger, closed nats.ConnHandler) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name(c.opts.Name + " " + purpose),
		nats.NoReconnect(),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsOpen),
		nats.ClosedHandler(closed),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { c.asyncError(log, sub, err) }),
	}
	if dl, ok := ctx.Deadline(); ok {
		wait := time.Until(dl)
		if strings.Contains(c.opts.URL, ",") {
			wait = min(wait, nats.DefaultTimeout) // one that hangs must not use up the others' time
		}
		opts = append(opts, nats.Timeout(max(wait, time.Millisecond)))
	}
	if c.opts.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(c.opts.InboxPrefix))
	}
	if c.opts.Creds != "" {
		opts = append(opts, nats.UserCredentials(c.opts.Creds))
	}
	if c.opts.NKey != "" {
		key, err := nats.NkeyOptionFromSeed(c.opts.NKey)
		if err != nil {
			return nil, fmt.Errorf("read nkey seed file: %w", err)
		}
		opts = append(opts, key)
	}
	if c.opts.TLS != nil {
		opts = append(opts, nats.Secure(c.opts.TLS))
	}
	if c.opts.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c.opts.InProcess))
	}
	return nats.Connect(c.opts.URL, opts...)
}

// take hands out a place on a data connection that is up; the returned function gives it back.
func (c *Conn) take(ctx context.Context, pool *[]*lane, capacity int, purpose string) (*link, func(), error) {
	ln, err := c.place(ctx, pool, capacity, purpose)
	if err != nil {
		return nil, nil, err
	}
	release := sync.OnceFunc(func() {
		c.lanes.Lock()
		defer c.lanes.Unlock()
		ln.users--
	})
	if _, err := ln.l.await(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return ln.l, release, nil
}

func (c *Conn) place(ctx context.Context, pool *[]*lane, capacity int, purpose string) (*lane, error) {
	if ln, err := c.vacant(pool, capacity); ln != nil || err != nil {
		return ln, err
	}
	select {
	case c.dialling <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrDisconnected, context.Cause(ctx))
	}
	defer func() { <-c.dialling }()
	if ln, err := c.vacant(pool, capacity); ln != nil || err != nil {
		return ln, err
	}
	l, err := c.dial(ctx, purpose, nil)
	if err != nil {
		return nil, foreign(err)
	}
	c.lanes.Lock()
	closed := c.closed
	ln := &lane{l: l, users: 1}
	if !closed {
		*pool = append(*pool, ln)
	}
	c.lanes.Unlock()
	if closed {
		l.close()
		return nil, ErrClosed
	}
	return ln, nil
}

// vacant takes a place on a lane that is there; nil when all are full.
func (c *Conn) vacant(pool *[]*lane, capacity int) (*lane, error) {
	c.lanes.Lock()
	defer c.lanes.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	for _, ln := range *pool {
		if ln.users < capacity {
			ln.users++
			return ln, nil
		}
	}
	return nil, nil
}

// quoted finds the subject in the server's text of a permission violation.
var quoted = regexp.MustCompile(`(Publish|Subscription) to "(\S+?)"`)

func (c *Conn) asyncError(log *slog.Logger, sub *nats.Subscription, err error) {
	if m := quoted.FindStringSubmatch(err.Error()); m != nil {
		// A denied request looks like a time-out to whoever waits for the answer; this is the only place that knows.
		log.Error("subject denied", "error", fmt.Errorf("%w: %w", ErrDenied, err).Error(), "subject", m[2],
			"operation", strings.ToLower(m[1]))
		c.denied.add(m[2])
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	log.Warn("asynchronous bus error", "error", err.Error(), "subject", subject)
}
