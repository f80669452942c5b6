package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// hdrExpectSubject names the subject whose last sequence a write expects, when it is not its own.
const hdrExpectSubject = "Nats-Expected-Last-Subject-Sequence-Subject"

// EnsureDLQ makes the stream of a job's dead letters. It refuses new letters when maxBytes are reached (zero: no bound),
// so that a job waits rather than loses one. The bound of a stream that is there stays as it is: a person may have set it.
// It has as many replicas as the state stream, for it holds what is nowhere else.
func (c *Conn) EnsureDLQ(ctx context.Context, job string, maxBytes int64) error {
	fail := func(err error, stream string) error {
		return fmt.Errorf("look for the dead letters of job %s: %w", job, c.denied.explain(err, "$JS.API.STREAM.INFO."+stream))
	}
	state, err := c.ctl.streamInfo(ctx, StateStream)
	if err != nil {
		return fail(err, StateStream)
	}
	there, err := c.ctl.streamInfo(ctx, DLQStream(job))
	if err == nil {
		maxBytes = there.Config.MaxBytes
	} else if !errors.Is(err, ErrNotFound) {
		return fail(err, DLQStream(job))
	}
	return c.ensureStream(ctx, jetstream.StreamConfig{
		Name: DLQStream(job), Subjects: []string{subject("weir.dlq", EscapeToken(job), ">")},
		Description: "Weir: rows of job " + job + " that can never apply",
		Storage:     jetstream.FileStorage, Discard: jetstream.DiscardNew, MaxBytes: maxBytes, MaxMsgsPerSubject: 1,
		Replicas: max(state.Config.Replicas, 1), AllowDirect: true, Metadata: map[string]string{metaRole: roleLetters, metaJob: job},
	})
}

// DropDLQ deletes the stream with all its letters. One that is not there is success.
func (c *Conn) DropDLQ(ctx context.Context, job string) error {
	err := c.ctl.request(ctx, "$JS.API.STREAM.DELETE."+DLQStream(job), nil, nil)
	if err == nil || errors.Is(err, ErrNotFound) {
		return nil
	}
	return fmt.Errorf("drop the dead letters of job %s: %w", job, c.denied.explain(err, "$JS.API.STREAM.DELETE."+DLQStream(job)))
}

// ClaimDLQ makes f the only attempt that may write a sink's letters and returns the claim that [Conn.PutDeadLetter] takes.
// From then on the server refuses letters of every older attempt, also those that are under way. fence.ErrFenced: a newer
// attempt has claimed. [ErrStreamGone]: there is no stream.
func (c *Conn) ClaimDLQ(ctx context.Context, job, sink string, f fence.Token) (claim uint64, err error) {
	stream, s := DLQStream(job), DLQClaim(job, sink)
	wrap := func(err error) error {
		return fmt.Errorf("claim the dead letters of %s.%s: %w", job, sink, c.denied.explain(gone(err), s, "$JS.API.STREAM.MSG.GET."+stream))
	}
	for {
		held, seq, err := c.dlqClaim(ctx, stream, s)
		if err != nil {
			return 0, wrap(err)
		}
		if held > f {
			return 0, wrap(fmt.Errorf("attempt %s holds them, this is %s: %w", held, f, fence.ErrFenced))
		}
		// Always as long, so that it takes the place of the last one in a stream that is full, too.
		m := &nats.Msg{
			Subject: s, Data: fmt.Appendf(nil, "%020d", uint64(f)),
			Header: nats.Header{hdrExpectLast: {strconv.FormatUint(seq, 10)}},
		}
		claim, err = c.ctl.store(ctx, m)
		if !errors.Is(err, ErrConflict) {
			if err != nil {
				return 0, wrap(err)
			}
			return claim, nil
		}
	}
}

// dlqClaim asks the stream's leader, not a replica, who may write a sink's letters; 0 when nobody has claimed.
func (c *Conn) dlqClaim(ctx context.Context, stream, subject string) (held fence.Token, seq uint64, err error) {
	e, err := c.ctl.newest(ctx, stream, subject)
	if err != nil || e.Revision == 0 {
		return 0, 0, err
	}
	held, err = fence.ParseToken(strings.TrimLeft(string(e.Value), "0"))
	if err != nil {
		return 0, 0, fmt.Errorf("%w: claim %q: %w", ErrDamaged, e.Value, err)
	}
	return held, e.Revision, nil
}

// PutDeadLetter stores a letter under a subject of [DLQSubject] for the attempt that holds the claim; putting the same
// letter again replaces it. [ErrConflict]: another attempt holds the claim, nothing was stored. [ErrFull]: no room.
func (c *Conn) PutDeadLetter(ctx context.Context, letter string, claim uint64, h Header, data []byte) error {
	job, sink, _, _, _, err := ParseDLQSubject(letter)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: letter, Header: nats.Header{
		hdrExpectLast: {strconv.FormatUint(claim, 10)}, hdrExpectSubject: {DLQClaim(job, sink)},
	}, Data: data}
	maps.Copy(m.Header, h)
	if _, err := c.ctl.store(ctx, m); err != nil {
		return fmt.Errorf("put dead letter %s: %w", letter, c.denied.explain(err, letter))
	}
	return nil
}

// EpochLetters lists the subjects of the letters that a sink's epoch has, as the stream's leader knows them.
// [ErrStreamGone]: there is no stream.
func (c *Conn) EpochLetters(ctx context.Context, job, sink string, e epoch.ID) ([]string, error) {
	return c.letters(ctx, job, DLQEpochFilter(job, sink, e))
}

func (c *Conn) letters(ctx context.Context, job, filter string) ([]string, error) {
	counts, err := c.ctl.subjects(ctx, DLQStream(job), filter)
	if err != nil {
		return nil, fmt.Errorf("list dead letters %s: %w", filter, c.denied.explain(gone(err), "$JS.API.STREAM.INFO."+DLQStream(job)))
	}
	found := make([]string, 0, len(counts))
	for s := range counts {
		found = append(found, s)
	}
	return found, nil
}

// CountLetters counts a job's letters by sink. A job without a stream has none.
func (c *Conn) CountLetters(ctx context.Context, job string) (map[string]uint64, error) {
	found, err := c.letters(ctx, job, DLQFilter(job))
	if errors.Is(err, ErrStreamGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	counts := make(map[string]uint64)
	for _, s := range found {
		_, sink, _, _, _, err := ParseDLQSubject(s)
		if err != nil {
			return nil, err
		}
		counts[sink]++
	}
	return counts, nil
}

// DeadLetters reads the headers of all letters of a job, sorted by subject; their values are left out. A job without a
// stream has none.
func (c *Conn) DeadLetters(ctx context.Context, job string) ([]Entry, error) {
	if _, err := c.ctl.streamInfo(ctx, DLQStream(job)); err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil, nil
		}
		return nil, fmt.Errorf("list dead letters of job %s: %w", job, c.denied.explain(err, "$JS.API.STREAM.INFO."+DLQStream(job)))
	}
	es, err := c.collect(ctx, watchSpec{stream: DLQStream(job), filter: DLQFilter(job), headersOnly: true})
	if err != nil {
		return nil, fmt.Errorf("list dead letters of job %s: %w", job, err)
	}
	return es, nil
}

// DeadLetter reads one letter by its subject; [ErrNotFound] when there is none.
func (c *Conn) DeadLetter(ctx context.Context, letter string) (Entry, error) {
	job, _, _, _, _, err := ParseDLQSubject(letter)
	if err != nil {
		return Entry{}, err
	}
	m, err := c.ctl.directLast(ctx, DLQStream(job), letter, opTimeout)
	if errors.Is(err, ErrNoResponders) {
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("read dead letter %s: %w", letter, c.denied.explain(err, "$JS.API.DIRECT.GET."+DLQStream(job)+"."+letter))
	}
	return storedEntry(m, "")
}

// DiscardDeadLetter removes a letter for good. One that is not there is success.
func (c *Conn) DiscardDeadLetter(ctx context.Context, letter string) error {
	job, _, _, _, _, err := ParseDLQSubject(letter)
	if err != nil {
		return err
	}
	if _, err := c.ctl.purge(ctx, DLQStream(job), letter); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("discard dead letter %s: %w", letter, c.denied.explain(err, "$JS.API.STREAM.PURGE."+DLQStream(job)))
	}
	return nil
}

// Headers of a dead letter, so that letters can be listed without reading the rows in them.
const (
	hdrLetterCode = "Weir-Code"
	hdrLetterOp   = "Weir-Op"
	hdrLetterLife = "Weir-Life"
)

// LetterHeader is the header of a dead letter.
func LetterHeader(code, op, life string) Header {
	return Header{hdrLetterCode: {code}, hdrLetterOp: {op}, hdrLetterLife: {life}}
}

// ParseLetterHeader reads what [LetterHeader] wrote.
func ParseLetterHeader(h Header) (code, op, life string) {
	return h.Get(hdrLetterCode), h.Get(hdrLetterOp), h.Get(hdrLetterLife)
}
