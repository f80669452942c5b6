package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"weir.dev/weir/pkg/fault"
)

// Headers of the key-value protocol.
const (
	hdrOperation   = "KV-Operation"
	hdrMarker      = "Nats-Marker-Reason"
	hdrExpectLast  = "Nats-Expected-Last-Subject-Sequence"
	hdrSubject     = "Nats-Subject"
	hdrSequence    = "Nats-Sequence"
	hdrTime        = "Nats-Time-Stamp"
	hdrPending     = "Nats-Num-Pending"
	opDelete       = "DEL"
	opPurge        = "PURGE"
	markerMaxAge   = "MaxAge"
	multiLastLimit = 1024 // results the server gives to one multi-last read
)

// Entry is a value in a bucket, or a message of a stream that keeps the last per subject.
type Entry struct {
	// Key in the bucket; for streams the whole subject.
	Key   string
	Value []byte
	// Header is empty for plain bucket values.
	Header Header
	// Revision is the stream sequence; it is what Update and Delete compare.
	Revision uint64
	// Time is when the server stored it, by the server's clock.
	Time time.Time
}

// Bucket is a key-value bucket. Values are read by direct get, which on a cluster any replica answers, also one that has
// lost its quorum: no read proves that a value is current, only a compare-and-swap does.
type Bucket struct {
	c      *Conn
	name   string
	stream string
	prefix string
	age    time.Duration
}

// Bucket opens a bucket that exists; [ErrNotFound] when it does not.
func (c *Conn) Bucket(ctx context.Context, name string) (*Bucket, error) {
	b := &Bucket{c: c, name: name, stream: "KV_" + name, prefix: "$KV." + name + "."}
	info, err := c.ctl.streamInfo(ctx, b.stream)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", name, c.denied.explain(err, "$JS.API.STREAM.INFO."+b.stream))
	}
	b.age = info.Config.MaxAge
	return b, nil
}

// TTL is the age at which values expired when the bucket was opened; zero when none do.
func (b *Bucket) TTL() time.Duration { return b.age }

// Mark is where a bucket is: it changes with everything that is stored there or removed, and when the bucket is made anew.
type Mark struct {
	Created time.Time
	Last    uint64
	Held    uint64
}

// Mark reads where the bucket is. Like every read it may be late; two that are equal say that the reads between them, and those
// that began later, can have seen nothing new.
func (b *Bucket) Mark(ctx context.Context) (Mark, error) {
	var info struct {
		Created time.Time `json:"created"`
		State   struct {
			Last     uint64 `json:"last_seq"`
			Messages uint64 `json:"messages"`
		} `json:"state"`
	}
	if err := b.c.ctl.request(ctx, "$JS.API.STREAM.INFO."+b.stream, nil, &info); err != nil {
		return Mark{}, b.wrap("look at", "*", err, "$JS.API.STREAM.INFO."+b.stream)
	}
	return Mark{Created: info.Created, Last: info.State.Last, Held: info.State.Messages}, nil
}

// Name is the bucket's name.
func (b *Bucket) Name() string { return b.name }

func (b *Bucket) wrap(op, key string, err error, apis ...string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s in bucket %s: %w", op, key, b.name, b.c.denied.explain(err, append(apis, b.prefix+key)...))
}

var errKey = fault.Mark(fault.Bug, errors.New("bus: key is empty or holds a wildcard or white space"))

func checkKey(key string) error {
	if key == "" || strings.ContainsAny(key, "*> \t\r\n") || strings.HasPrefix(key, ".") || strings.HasSuffix(key, ".") {
		return errKey
	}
	return nil
}

// Get reads a key. A key that never was, was deleted or has expired is [ErrNotFound].
func (b *Bucket) Get(ctx context.Context, key string) (Entry, error) {
	e, live, err := b.last(ctx, key)
	if err == nil && !live {
		err = ErrNotFound
	}
	if err != nil {
		return Entry{}, b.wrap("get", key, err, "$JS.API.DIRECT.GET."+b.stream+"."+b.prefix+key)
	}
	return e, nil
}

// last reads the newest message of a key, markers included; live is false for these.
func (b *Bucket) last(ctx context.Context, key string) (e Entry, live bool, err error) {
	if err := checkKey(key); err != nil {
		return Entry{}, false, err
	}
	m, err := b.c.ctl.directLast(ctx, b.stream, b.prefix+key, opTimeout)
	if err != nil {
		return Entry{}, false, err
	}
	if e, err = storedEntry(m, b.prefix); err != nil {
		return Entry{}, false, err
	}
	return e, removal(m.Header) == Put, nil
}

// Create stores a key that does not exist, or no longer does; [ErrConflict] when it does.
func (b *Bucket) Create(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	rev, err := b.swap(ctx, key, value, 0, "")
	if !errors.Is(err, ErrConflict) {
		return rev, b.wrap("create", key, err)
	}
	// The subject may hold only the marker of a deleted or expired value; then this is the revision to beat. When even
	// that is gone by now, zero was right and is tried once more.
	e, live, lastErr := b.last(ctx, key)
	switch {
	case errors.Is(lastErr, ErrNotFound):
		rev, err = b.swap(ctx, key, value, 0, "")
	case lastErr != nil:
		err = lastErr
	case !live:
		rev, err = b.swap(ctx, key, value, e.Revision, "")
	}
	return rev, b.wrap("create", key, err)
}

// Update replaces the value whose revision is given and returns the new revision. [ErrConflict]: another write came
// first. [ErrUnknown]: it may have been stored, or may yet be; read back and compare what tells owner and attempt apart.
func (b *Bucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	rev, err := b.swap(ctx, key, value, revision, "")
	return rev, b.wrap("update", key, err)
}

// Put stores a value whatever is there.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) (revision uint64, err error) {
	if err := checkKey(key); err != nil {
		return 0, b.wrap("put", key, err)
	}
	rev, err := b.c.ctl.store(ctx, &nats.Msg{Subject: b.prefix + key, Data: value})
	return rev, b.wrap("put", key, err)
}

// Delete marks the key as deleted when revision is its newest one; zero deletes whatever is there. The marker stays in
// the bucket: for keys that come and go use [Bucket.PurgeSubject].
func (b *Bucket) Delete(ctx context.Context, key string, revision uint64) error {
	var err error
	if revision == 0 {
		if err = checkKey(key); err == nil {
			h := nats.Header{hdrOperation: {opDelete}}
			_, err = b.c.ctl.store(ctx, &nats.Msg{Subject: b.prefix + key, Header: h})
		}
	} else {
		_, err = b.swap(ctx, key, nil, revision, opDelete)
	}
	return b.wrap("delete", key, err)
}

func (b *Bucket) swap(ctx context.Context, key string, value []byte, revision uint64, op string) (uint64, error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	h := nats.Header{hdrExpectLast: {strconv.FormatUint(revision, 10)}}
	if op != "" {
		h[hdrOperation] = []string{op}
	}
	return b.c.ctl.store(ctx, &nats.Msg{Subject: b.prefix + key, Header: h, Data: value})
}

// PurgeSubject removes all revisions of the keys that match pattern and leaves no trace. It is for keys that nobody
// watches and that are never made again, such as old manifests: watchers do not see it.
func (b *Bucket) PurgeSubject(ctx context.Context, pattern string) error {
	_, err := b.c.ctl.purge(ctx, b.stream, b.prefix+pattern)
	return b.wrap("purge", pattern, err, "$JS.API.STREAM.PURGE."+b.stream)
}

// purge removes the messages of a stream that match filter and returns their number.
func (l *link) purge(ctx context.Context, stream, filter string) (uint64, error) {
	var resp struct {
		Purged uint64 `json:"purged"`
	}
	err := l.request(ctx, "$JS.API.STREAM.PURGE."+stream, map[string]any{"filter": filter}, &resp)
	return resp.Purged, err
}

// GetMany reads the current values of all keys that match any of the patterns (keys, or with wildcards), sorted by key.
// Up to 1024 keys are one snapshot: no write falls between two of them. More are read one after the other.
func (b *Bucket) GetMany(ctx context.Context, patterns ...string) ([]Entry, error) {
	subjects := make([]string, len(patterns))
	for i, p := range patterns {
		subjects[i] = b.prefix + p
	}
	es, err := b.c.lastMany(ctx, b.stream, b.prefix, subjects)
	return es, b.wrap("get", strings.Join(patterns, ","), err, "$JS.API.DIRECT.GET."+b.stream)
}

// Keys lists the keys that match pattern, sorted; deleted and expired ones are left out.
func (b *Bucket) Keys(ctx context.Context, pattern string) ([]string, error) {
	es, err := b.c.collect(ctx, watchSpec{
		stream: b.stream, filter: b.prefix + pattern, prefix: b.prefix, lastOnly: true, headersOnly: true,
	})
	if err != nil {
		return nil, b.wrap("list", pattern, err)
	}
	keys := make([]string, len(es))
	for i, e := range es {
		keys[i] = e.Key
	}
	return keys, nil
}

// Watch delivers the current value of each key that matches pattern, then every change. See [Watch].
func (b *Bucket) Watch(ctx context.Context, pattern string) *Watch {
	return b.c.watch(ctx, watchSpec{
		stream: b.stream, filter: b.prefix + pattern, prefix: b.prefix, lastOnly: true,
	})
}
