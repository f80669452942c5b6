package nats

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
)

// standing is what the end of the stream says.
type standing struct {
	seq uint64 // of the newest write
	mark
}

// row is the ledger's row.
func (s *standing) row() core.Row { return core.Row{Life: s.Life, Ref: s.Ref, Fence: s.Fence} }

// stand reads where the stream stands.
func (c *committer) stand(ctx context.Context) (standing, error) {
	t, err := c.outlet.Tail(ctx, c.marks)
	if err != nil || t.Seq == 0 {
		return standing{}, err
	}
	if t.Mark.Revision == 0 {
		return standing{}, c.foreign("it has had %d messages and holds no mark of Weir: somebody has written to it, or removed everything", t.Seq)
	}
	s := standing{seq: t.Seq}
	if s.mark, err = parseMark(t.Mark); err != nil {
		return standing{}, c.foreign("%s", err)
	}
	if s.Job != c.cfg.Job || s.Sink != c.cfg.Sink.Name {
		return standing{}, fault.New(fault.JobLedgerForeign, c.where,
			fmt.Sprintf("stream %s holds the events of sink %s of job %s", c.target.Stream, s.Sink, s.Job), "job", c.cfg.Job)
	}
	if age := c.outlet.MaxAge(); t.Last.Revision < t.Seq && age > 0 && time.Since(t.Mark.Time) > age/2 {
		return standing{}, c.foreign("messages up to %d are gone and may be events that have expired", t.Seq)
	}
	if t.Last.Revision == t.Mark.Revision {
		return s, nil
	}
	l, ok := parseLabel(t.Last.Header)
	switch {
	case !ok:
		return standing{}, c.foreign("its newest message, %d under %s, is no event of Weir", t.Last.Revision, t.Last.Key)
	case l.life != s.Life || l.fence != s.Fence || (s.Open.Epoch != 0 && s.Open.Epoch != l.at.Epoch) || l.at.Epoch <= s.Ref.Epoch:
		return standing{}, c.foreign("its newest message, %d, is an event of life %s, fence %s, epoch %s; the mark before it has %s, %s, %s",
			t.Last.Revision, l.life, l.fence, l.at.Epoch, s.Life, s.Fence, s.Ref.Epoch)
	}
	s.Open = l.at
	return s, nil
}

func (c *committer) foreign(why string, args ...any) error {
	return fault.New(fault.SinkStreamForeign, c.where, fmt.Sprintf("stream %s: ", c.target.Stream)+fmt.Sprintf(why, args...),
		"stream", c.target.Stream, "prefix", c.target.Prefix, "job", c.cfg.Job)
}

// put writes a mark and makes it the standing once it is flushed; here it is only sent.
func (c *committer) put(ctx context.Context, a *bus.Appender, m mark) error {
	m.Version, m.Job, m.Sink, m.At = markVersion, c.cfg.Job, c.cfg.Sink.Name, time.Now().UTC()
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode mark: %w", err)
	}
	return a.PutLasting(ctx, c.marks, bus.Header{headerType: {"application/json"}}, data)
}

// logSpan is how far before the newest commit the log goes back.
const logSpan = time.Hour

// ReadLedger reads the ledger of a sink for people and audits. A stream that is not there or empty gives an empty one. The
// log begins one hour before the newest commit.
func ReadLedger(ctx context.Context, cfg sink.Config) (core.Ledger, error) {
	target, err := configOf(cfg)
	if err != nil {
		return core.Ledger{}, err
	}
	c := &committer{cfg: cfg, target: target, where: "sinks." + cfg.Sink.Name, marks: markSubject(target.Prefix)}
	l, err := c.readLedger(ctx)
	return l, c.translate(ctx, err)
}

func (c *committer) readLedger(ctx context.Context) (l core.Ledger, err error) {
	if c.conn, err = connect(ctx, c.cfg, c.target); err != nil {
		return core.Ledger{}, err
	}
	defer c.conn.Close()
	if c.outlet, err = c.conn.OpenOutlet(ctx, bus.OutletConfig{Stream: c.target.Stream, Prefix: c.target.Prefix}); err != nil {
		if isGone(err) {
			return core.Ledger{}, nil
		}
		return core.Ledger{}, err
	}
	s, err := c.stand(ctx)
	if err != nil || s.Life == "" {
		return core.Ledger{}, err
	}
	l = core.Ledger{Life: s.Life, Fence: s.Fence, Ref: s.Ref, Positions: s.Positions}
	if s.Ref.Epoch == 0 {
		return l, nil
	}
	// Marks repeat the commit, so the newest one is within the span of its own time.
	marks, err := c.outlet.Read(ctx, c.marks, s.At.Add(-logSpan))
	if err != nil {
		return core.Ledger{}, err
	}
	for _, e := range marks {
		m, err := parseMark(e)
		if err != nil {
			return core.Ledger{}, c.foreign("%s", err)
		}
		if m.Kind == committed {
			l.Log = append(l.Log, core.Entry{Ref: m.Ref, Prev: m.Prev, Fence: m.Fence, Rows: m.Rows, Dead: m.Dead, At: m.At})
		}
	}
	if len(l.Log) == 0 { // the commit is older; a later claim repeats it
		l.Log = []core.Entry{{Ref: s.Ref, Prev: s.Prev, Fence: s.Fence, Rows: s.Rows, Dead: s.Dead, At: s.At}}
	}
	return l, nil
}
