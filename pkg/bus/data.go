package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir.dev/weir/pkg/fence"
)

// DataConfig shapes the data stream of one attempt.
type DataConfig struct {
	Job   string
	Fence fence.Token
	// MaxMsgsPerSubject bounds each channel: the window plus the reserve for barriers. It is the backstop; writers keep
	// below it by their own count.
	MaxMsgsPerSubject int64
	// MaxBytes bounds the stream; zero is no bound.
	MaxBytes int64
	// Replicas is 1 unless a job asks for more; rows are read again from the source after a loss.
	Replicas int
	// Life is the job's, for people with `nats stream info`. Optional.
	Life string
	// Metadata is shown beside what the stream says of itself, for example the plan's fingerprint. Optional.
	Metadata map[string]string
}

// CreateData makes the data stream of an attempt: a work queue in memory that refuses what does not fit, as a whole and
// per channel. It is create-only in effect: when the stream exists with the same configuration this is success.
func (c *Conn) CreateData(ctx context.Context, cfg DataConfig) error {
	name := DataStream(cfg.Job, cfg.Fence)
	meta := maps.Clone(cfg.Metadata)
	if meta == nil {
		meta = make(map[string]string, 4)
	}
	meta[metaRole], meta[metaJob], meta[metaFence] = roleData, cfg.Job, cfg.Fence.String()
	if cfg.Life != "" {
		meta[metaLife] = cfg.Life
	}
	sc := jetstream.StreamConfig{
		Name: name, Subjects: []string{DataAll(cfg.Job, cfg.Fence)},
		Description: "Weir: rows of job " + cfg.Job + ", attempt " + cfg.Fence.String(),
		// WorkQueue frees a message when its one receiver acknowledges it. It refuses cumulative acknowledgement and
		// overlapping filters; neither is used.
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: cfg.MaxMsgsPerSubject > 0,
		MaxMsgsPerSubject: cfg.MaxMsgsPerSubject, MaxBytes: cfg.MaxBytes,
		Replicas: max(cfg.Replicas, 1), AllowDirect: true, Metadata: meta,
	}
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err == nil {
		defer cancel()
		_, err = s.js.CreateStream(ctx, sc)
	}
	if err != nil {
		return fmt.Errorf("create data stream %s: %w", name,
			c.denied.explain(foreign(err), "$JS.API.STREAM.CREATE."+name))
	}
	return nil
}

// DeleteData deletes the data stream of one attempt and with it data, consumers and everybody's right to write there.
// A stream that does not exist is success.
func (c *Conn) DeleteData(ctx context.Context, job string, f fence.Token) error {
	return c.deleteStream(ctx, DataStream(job, f))
}

func (c *Conn) deleteStream(ctx context.Context, name string) error {
	err := c.ctl.request(ctx, "$JS.API.STREAM.DELETE."+name, nil, nil)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete stream %s: %w", name, c.denied.explain(err, "$JS.API.STREAM.DELETE."+name))
	}
	return nil
}

// DeleteDataBelow deletes every data stream of the job whose fence is lower. Names are parsed, not matched by prefix, and
// the stream must have the job's subjects; other jobs' streams are never touched. It tries all and joins what failed.
func (c *Conn) DeleteDataBelow(ctx context.Context, job string, f fence.Token) error {
	infos, err := c.dataStreams(ctx, job)
	if err != nil {
		return fmt.Errorf("list data streams of job %s: %w", job, err)
	}
	var failed []error
	for _, at := range infos {
		if at < f {
			failed = append(failed, c.DeleteData(ctx, job, at))
		}
	}
	return errors.Join(failed...)
}

// DataFences lists the fences for which the job has a data stream, in no particular order.
func (c *Conn) DataFences(ctx context.Context, job string) ([]fence.Token, error) {
	return c.dataStreams(ctx, job)
}

func (c *Conn) dataStreams(ctx context.Context, job string) ([]fence.Token, error) {
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	// The subject filter keeps other jobs out of the answer; a job's name is one whole token of it. Names are known to a
	// cluster's leader, while a list waits for every server that has one of the streams, also for one that is gone.
	l := s.js.StreamNames(ctx, jetstream.WithStreamListSubject(subject("weir.data", EscapeToken(job), ">")))
	var found []fence.Token
	for name := range l.Name() {
		if owner, f, ok := ParseDataStream(name); ok && owner == job {
			found = append(found, f)
		}
	}
	if err := l.Err(); err != nil {
		return nil, c.denied.explain(foreign(err), "$JS.API.STREAM.NAMES")
	}
	return found, nil
}

// DataState is what a data stream holds. LastSeq never falls while the stream lives: a lower value, like another
// Created, means that rows were lost.
type DataState struct {
	LastSeq, Msgs, Bytes uint64
	Created              time.Time
}

// DataState reads the state of an attempt's data stream; [ErrStreamGone] when there is none.
func (c *Conn) DataState(ctx context.Context, job string, f fence.Token) (DataState, error) {
	info, err := c.ctl.streamInfo(ctx, DataStream(job, f))
	if err != nil {
		err = c.denied.explain(err, "$JS.API.STREAM.INFO."+DataStream(job, f))
		return DataState{}, fmt.Errorf("read state of %s: %w", DataStream(job, f), gone(err))
	}
	return DataState{
		LastSeq: info.State.LastSeq, Msgs: info.State.Msgs, Bytes: info.State.Bytes, Created: info.Created,
	}, nil
}

// SubjectCounts tells how many messages each subject of an attempt holds, for those that match filter; "" is all.
// Subjects without messages are left out. [ErrStreamGone] when there is no stream.
func (c *Conn) SubjectCounts(ctx context.Context, job string, f fence.Token, filter string) (map[string]uint64, error) {
	if filter == "" {
		filter = ">"
	}
	counts, err := c.ctl.subjects(ctx, DataStream(job, f), filter)
	if err != nil {
		err = c.denied.explain(err, "$JS.API.STREAM.INFO."+DataStream(job, f))
		return nil, fmt.Errorf("count subjects of %s: %w", DataStream(job, f), gone(err))
	}
	return counts, nil
}

// streamInfo reads a stream's configuration and state.
func (l *link) streamInfo(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	var info jetstream.StreamInfo
	if err := l.request(ctx, "$JS.API.STREAM.INFO."+name, nil, &info); err != nil {
		return nil, err
	}
	return &info, nil
}
