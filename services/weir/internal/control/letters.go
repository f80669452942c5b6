package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
)

// Letter is a dead letter in a list: what is known of it without reading the row.
type Letter struct {
	// ID is <sink>/<table>/<epoch>.<index>.
	ID    string   `json:"id"`
	Sink  string   `json:"sink"`
	Table string   `json:"table"`
	Epoch epoch.ID `json:"epoch"`
	Index int      `json:"index"`
	// Code says why, Op is the row's operation.
	Code string `json:"code"`
	Op   string `json:"op"`
	Life string `json:"life"`
	// At is when it was put aside, by the bus's clock.
	At time.Time `json:"at"`

	subject string
}

// Touched is what became of letters that were to be discarded or replayed.
type Touched struct {
	Job  string   `json:"job"`
	Done []string `json:"done"`
	// Kept are letters that stay, and why.
	Kept []Kept `json:"kept"`
}

// Kept is a letter that stays.
type Kept struct {
	ID    string       `json:"id"`
	Fault *fault.Error `json:"fault"`
}

// Letters lists a job's dead letters, the oldest first.
func (c *Client) Letters(ctx context.Context, name string) ([]Letter, error) {
	if _, err := c.Head(ctx, name); err != nil {
		return nil, err
	}
	found, err := c.conn.DeadLetters(ctx, name)
	if err != nil {
		return nil, err
	}
	all := make([]Letter, 0, len(found))
	for _, e := range found {
		l := Letter{subject: e.Key, At: e.Time}
		if _, l.Sink, l.Table, l.Epoch, l.Index, err = bus.ParseDLQSubject(e.Key); err != nil {
			return nil, err
		}
		l.ID = fmt.Sprintf("%s/%s/%s.%d", l.Sink, l.Table, l.Epoch, l.Index)
		l.Code, l.Op, l.Life = bus.ParseLetterHeader(e.Header)
		all = append(all, l)
	}
	slices.SortFunc(all, func(x, y Letter) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Sink, y.Sink), cmp.Compare(x.Table, y.Table), cmp.Compare(x.Index, y.Index))
	})
	return all, nil
}

// letterSubject takes an id apart.
func letterSubject(job, id string) (string, error) {
	bad := fault.New(fault.CLIUsage, id, "want <sink>/<table>/<epoch>.<index>, as `weir dlq list` prints it", "command", "weir dlq")
	sinkName, rest, ok := strings.Cut(id, "/")
	at := strings.LastIndexByte(rest, '/')
	if !ok || at <= 0 {
		return "", bad
	}
	number, index, ok := strings.Cut(rest[at+1:], ".")
	e, err := epoch.ParseID(number)
	n, err2 := strconv.Atoi(index)
	if !ok || err != nil || err2 != nil || n < 0 {
		return "", bad
	}
	return bus.DLQSubject(job, sinkName, rest[:at], e, n), nil
}

// Letter reads one dead letter with its row.
func (c *Client) Letter(ctx context.Context, name, id string) (sink.Letter, error) {
	subject, err := letterSubject(name, id)
	if err != nil {
		return sink.Letter{}, err
	}
	return c.readLetter(ctx, id, subject)
}

func (c *Client) readLetter(ctx context.Context, id, subject string) (sink.Letter, error) {
	e, err := c.conn.DeadLetter(ctx, subject)
	if errors.Is(err, bus.ErrNotFound) {
		return sink.Letter{}, fault.Wrap(err, fault.CLINoLetter, id, "it was discarded or replayed, or never was")
	}
	if err != nil {
		return sink.Letter{}, err
	}
	var l sink.Letter
	if err := json.Unmarshal(e.Value, &l); err != nil {
		return l, fmt.Errorf("read dead letter %s: %w", id, err)
	}
	return l, nil
}

// Discard removes letters for good, those named or, when none is, all. A letter whose epoch is not committed yet is kept: its
// commit may be repeated, and would find the row again.
func (c *Client) Discard(ctx context.Context, name string, ids []string) (Touched, error) {
	return c.touch(ctx, name, ids, func(Letter) error { return nil })
}

// Replay gives each letter to apply, oldest first, and removes it when that has taken it.
func (c *Client) Replay(ctx context.Context, name string, ids []string, apply func(context.Context, sink.Letter) error) (Touched, error) {
	return c.touch(ctx, name, ids, func(l Letter) error {
		whole, err := c.readLetter(ctx, l.ID, l.subject)
		if err != nil {
			return err
		}
		return apply(ctx, whole)
	})
}

func (c *Client) touch(ctx context.Context, name string, ids []string, first func(Letter) error) (Touched, error) {
	t := Touched{Job: name, Done: []string{}, Kept: []Kept{}}
	all, err := c.Letters(ctx, name)
	if err != nil {
		return t, err
	}
	wanted, err := choose(all, name, ids)
	if err != nil {
		return t, err
	}
	h, err := c.Head(ctx, name) // after the letters: what they belong to may have been committed since, not the other way round
	if err != nil {
		return t, err
	}
	for _, l := range wanted {
		err := uncommitted(h, l)
		if err == nil {
			err = first(l)
		}
		if err == nil {
			err = c.conn.DiscardDeadLetter(ctx, l.subject)
		}
		if ctx.Err() != nil {
			return t, context.Cause(ctx)
		}
		if err != nil {
			t.Kept = append(t.Kept, Kept{ID: l.ID, Fault: fault.Of(err)})
			continue
		}
		t.Done = append(t.Done, l.ID)
	}
	return t, nil
}

// choose keeps the letters that are named; all when none is.
func choose(all []Letter, name string, ids []string) ([]Letter, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var wanted []Letter
	for _, id := range ids {
		subject, err := letterSubject(name, id)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(l Letter) bool { return l.subject == subject })
		if at < 0 {
			return nil, fault.New(fault.CLINoLetter, id, "it was discarded or replayed, or never was")
		}
		wanted = append(wanted, all[at])
	}
	return wanted, nil
}

// uncommitted is the refusal to touch a letter whose epoch may be committed yet.
func uncommitted(h *job.Head, l Letter) error {
	if l.Life != h.Life || l.Epoch <= h.Committed || h.Phase == job.Cancelled || h.Phase == job.Finished {
		return nil
	}
	return fault.New(fault.SinkDLQRefused, l.ID, fmt.Sprintf("its epoch %s is not committed yet; committed is epoch %s", l.Epoch, h.Committed), "job", h.Job)
}
