package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// OutletConfig names a stream of the user's and what of it is ours.
type OutletConfig struct {
	Stream string
	// Prefix is the beginning of every subject of the stream, without the last dot.
	Prefix string
	// Create makes the stream when it is missing, with Replicas copies; zero takes 1 on one server and 3 on a cluster.
	Create   bool
	Replicas int
	// Note is the description of a stream that is made. Optional.
	Note string
}

// Outlet is a stream of the user's that has one writer: what it holds was written by nobody else, and every write says
// which one it follows. It is safe for concurrent use.
type Outlet struct {
	c        *Conn
	cfg      OutletConfig
	maxEvent int64
	maxAge   time.Duration
}

// maxRecord is what a file stream can store of one message, less room for what the server adds.
const maxRecord = 32<<20 - 64<<10

// appendRoom bounds what an [Appender] adds to the header of a message.
const appendRoom = 256

// hdrExpectStream is the sequence of the newest message that a stream must have for a write to be stored.
const hdrExpectStream = "Nats-Expected-Last-Sequence"

// OpenOutlet finds or makes the stream and checks that an outlet can rely on it. [ErrNotFound]: it is not there and is not
// to be made. [ErrShape]: it cannot serve; the text says why.
func (c *Conn) OpenOutlet(ctx context.Context, cfg OutletConfig) (*Outlet, error) {
	info, err := c.ctl.streamInfo(ctx, cfg.Stream)
	if errors.Is(err, ErrNotFound) && cfg.Create {
		if err = c.createOutlet(ctx, cfg); err == nil {
			info, err = c.ctl.streamInfo(ctx, cfg.Stream)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", cfg.Stream,
			c.denied.explain(err, "$JS.API.STREAM.INFO."+cfg.Stream, "$JS.API.STREAM.CREATE."+cfg.Stream))
	}
	if unfit := outletUnfit(&info.Config, cfg.Prefix); len(unfit) > 0 {
		return nil, fmt.Errorf("open stream %s: %w: %s", cfg.Stream, ErrShape, strings.Join(unfit, "; "))
	}
	o := &Outlet{c: c, cfg: cfg, maxEvent: min(c.MaxPayload(), maxRecord), maxAge: info.Config.MaxAge}
	if most := int64(info.Config.MaxMsgSize); most > 0 {
		o.maxEvent = min(o.maxEvent, most)
	}
	return o, nil
}

// createOutlet makes the stream. One that somebody else made meanwhile is success; its shape is checked afterwards.
func (c *Conn) createOutlet(ctx context.Context, cfg OutletConfig) error {
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	replicas := cfg.Replicas
	if replicas <= 0 {
		replicas = BaseConfig{}.on(s.nc.ConnectedClusterName() != "").Replicas
	}
	_, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: cfg.Stream, Subjects: []string{cfg.Prefix + ".>"}, Description: cfg.Note, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardOld, Replicas: replicas, AllowDirect: true, AllowMsgTTL: true,
		AllowAtomicPublish: true,
		Metadata:           map[string]string{metaRole: roleOutlet},
	})
	if err = foreign(err); errors.Is(err, ErrShape) && errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

// Bounds below which a stream that drops old messages could lose its newest mark while an epoch is being written.
const (
	leastKeptBytes = 64 << 20
	leastKeptMsgs  = 50_000
)

// outletUnfit lists why a stream cannot be an outlet: messages that are stored and not there afterwards, or that somebody
// else writes.
func outletUnfit(sc *jetstream.StreamConfig, prefix string) []string {
	var unfit []string
	no := func(bad bool, why string, args ...any) {
		if bad {
			unfit = append(unfit, fmt.Sprintf(why, args...))
		}
	}
	no(sc.Mirror != nil, "it is a mirror, which takes no writes")
	no(len(sc.Sources) > 0, "it has sources, which write into it")
	no(sc.Mirror == nil && (len(sc.Subjects) != 1 || sc.Subjects[0] != prefix+".>"),
		"its subjects are %q; they must be %q and no others", strings.Join(sc.Subjects, ", "), prefix+".>")
	no(sc.SubjectTransform != nil, "it changes subjects (subject_transform)")
	no(sc.Retention != jetstream.LimitsPolicy, "its retention is %s; messages that nobody waits for would be gone at once: use limits", sc.Retention)
	no(sc.Storage != jetstream.FileStorage, "it is in memory, and gone with its server: use file storage")
	no(sc.PersistMode == jetstream.AsyncPersistMode, "its persist_mode is async: what it has acknowledged may be lost")
	no(!sc.AllowAtomicPublish, "it takes no atomic batches (allow_atomic), which NATS has since 2.12")
	no(sc.NoAck, "it acknowledges nothing (no_ack)")
	no(sc.Sealed, "it is sealed")
	no(sc.AllowMsgCounter, "it counts (allow_msg_counter)")
	no(sc.AllowMsgSchedules || sc.SubjectDeleteMarkerTTL > 0, "the server itself writes into it (schedules or delete markers)")
	no(sc.MaxMsgsPerSubject > 0, "max_msgs_per_subject %d would drop changes of a table", sc.MaxMsgsPerSubject)
	no(sc.MaxAge > 0 && !sc.AllowMsgTTL, "max_age needs allow_msg_ttl: the mark of the newest epoch must not expire")
	if sc.Discard == jetstream.DiscardOld {
		no(sc.MaxBytes > 0 && sc.MaxBytes < leastKeptBytes, "max_bytes %d with discard old is less than %d", sc.MaxBytes, int64(leastKeptBytes))
		no(sc.MaxMsgs > 0 && sc.MaxMsgs < leastKeptMsgs, "max_msgs %d with discard old is less than %d", sc.MaxMsgs, leastKeptMsgs)
	}
	return unfit
}

// Fits reports whether the stream and the server take a message of this header and size.
func (o *Outlet) Fits(h Header, size int) bool {
	return headerSize(h)+int64(size)+appendRoom <= o.maxEvent
}

// MaxEvent is the size of the biggest message, header included, in bytes.
func (o *Outlet) MaxEvent() int64 { return o.maxEvent }

// MaxAge is when the server removes messages that may expire; 0 is never.
func (o *Outlet) MaxAge() time.Duration { return o.maxAge }

// Tail is the end of an outlet.
type Tail struct {
	// Seq is the sequence of the newest write, whether its message is still there or not; 0 when there was none.
	Seq uint64
	// Last is the newest message that is there, Mark the newest one under the subject of marks; without Revision there is none.
	Last, Mark Entry
}

// Tail reads the end of the stream from its leader. Writes that are under way may follow; they make an [Appender] that begins
// here fail with [ErrConflict].
func (o *Outlet) Tail(ctx context.Context, marks string) (Tail, error) {
	fail := func(err error) (Tail, error) {
		return Tail{}, fmt.Errorf("read the end of stream %s: %w", o.cfg.Stream, o.c.denied.explain(err,
			"$JS.API.STREAM.INFO."+o.cfg.Stream, "$JS.API.STREAM.MSG.GET."+o.cfg.Stream))
	}
	info, err := o.c.ctl.streamInfo(ctx, o.cfg.Stream)
	if err != nil {
		return fail(err)
	}
	t := Tail{Seq: info.State.LastSeq}
	if t.Seq == 0 {
		return t, nil
	}
	if t.Last, err = o.c.ctl.newest(ctx, o.cfg.Stream, ">"); err != nil {
		return fail(err)
	}
	if t.Mark, err = o.c.ctl.newest(ctx, o.cfg.Stream, marks); err != nil {
		return fail(err)
	}
	if t.Mark.Revision > t.Last.Revision {
		t.Last = t.Mark
	}
	t.Seq = max(t.Seq, t.Last.Revision)
	return t, nil
}

// Read reads the messages under a filter that were stored since a time, oldest first.
func (o *Outlet) Read(ctx context.Context, filter string, since time.Time) ([]Entry, error) {
	var found []Entry
	err := o.c.beginning(ctx, watchSpec{stream: o.cfg.Stream, filter: filter, since: since}, func(u Update) {
		if u.Kind == Put {
			found = append(found, u.Entry)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read %s of stream %s: %w", filter, o.cfg.Stream, err)
	}
	return found, nil
}
