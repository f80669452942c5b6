package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/spec"
)

// LedgerAt is what the ledger of one sink holds.
type LedgerAt struct {
	Life  string
	Fence fence.Token
	Ref   epoch.Ref
	// Positions are those of the epoch, by reader.
	Positions map[string]position.Position
	// None says that the sink keeps no ledger: nothing it does is ever visible.
	None bool
}

// LedgerOf reads the ledger of a sink.
type LedgerOf func(ctx context.Context, jobName string, s spec.Sink) (LedgerAt, error)

// Adopt has a job at rest go on from what the ledgers of its sinks say, because they know more than the bus. It reads them first,
// and refuses when they do not agree, or when a source cannot go on from a position alone. It returns when the job runs.
func (c *Client) Adopt(ctx context.Context, name string, trust bool, ledger LedgerOf) (Asked, error) {
	if err := c.allowed(ctx, name, "adopt", job.Suspended, job.Failed); err != nil {
		return Asked{}, err
	}
	h, j, err := c.current(ctx, name)
	if err != nil {
		return Asked{}, err
	}
	at := make(map[string]LedgerAt)
	for _, s := range j.Sinks {
		if at[s.Name], err = ledger(ctx, name, s); err != nil {
			return Asked{}, fmt.Errorf("read the ledger of sink %s: %w", s.Name, err)
		}
	}
	o, err := adoption(h, j, at, trust)
	if err != nil {
		return Asked{}, err
	}
	var seq uint64
	change := func(i job.Intent, request string, now time.Time) job.Intent {
		i = i.Adopting(o, request, now)
		seq = i.Adopt.Seq
		return i
	}
	h, err = c.ask(ctx, name, change, func(h *job.Head) bool { return h.Handled.Adopt >= seq || over(h.Phase) })
	if err != nil {
		return Asked{}, err
	}
	if err := refused(h, fault.CLIAdopt, job.OrderAdopt, seq); err != nil {
		return Asked{}, err
	}
	if h, err = c.begun(ctx, name); err != nil {
		return Asked{}, err
	}
	return asked(h, "nothing can; the job is now the one that the ledgers belong to"), nil
}

// adoption is the pure part of Adopt: what to ask for, or why not.
func adoption(h *job.Head, j *spec.Job, at map[string]LedgerAt, trust bool) (job.AdoptOrder, error) {
	refuse := func(where, format string, args ...any) (job.AdoptOrder, error) {
		return job.AdoptOrder{}, fault.New(fault.CLIAdopt, where, fmt.Sprintf(format, args...), "job", h.Job)
	}
	for _, s := range j.Sources {
		if s.Type != "postgres" {
			return refuse("sources."+s.Name, "a %s source cannot go on from a position alone", s.Type)
		}
	}
	o := job.AdoptOrder{Trust: trust, Rows: make(map[string]epoch.Ref), Positions: make(map[plan.SubtaskID]position.Position)}
	if h.Durable != nil {
		o.Over = h.Durable.Ref
	}
	first := ""
	for _, name := range slices.Sorted(maps.Keys(at)) {
		l := at[name]
		switch {
		case l.None:
			o.Rows[name] = epoch.Ref{}
			continue
		case l.Life == "" || l.Ref.IsZero():
			return refuse("sinks."+name, "its ledger holds no epoch")
		case first == "":
			first = name
		case l.Life != at[first].Life:
			return refuse("sinks."+name, "its ledger has life %s, that of %s has life %s", l.Life, first, at[first].Life)
		case !maps.EqualFunc(l.Positions, at[first].Positions, samePosition):
			return refuse("sinks."+name, "its ledger is at epoch %s (%s), that of %s at epoch %s (%s): they have not the same rows",
				l.Ref.Epoch, positions(l.Positions), first, at[first].Ref.Epoch, positions(at[first].Positions))
		}
		o.Rows[name], o.Life, o.Fence = l.Ref, l.Life, max(o.Fence, l.Fence)
	}
	if first == "" {
		return refuse(h.Job, "no sink keeps a ledger")
	}
	// An adoption that was refused at the source has left an epoch of its own: it is still to be carried out.
	again := trust && h.Adopted != nil && h.Durable != nil && h.Adopted.As == h.Durable.Ref
	if h.Durable != nil && o.Life == h.Life && at[first].Ref.Epoch <= h.Durable.Epoch && !again {
		return refuse("sinks."+first, "its ledger is at epoch %s and epoch %s is durable: the bus knows what the ledger knows", at[first].Ref.Epoch, h.Durable.Epoch)
	}
	for text, p := range at[first].Positions {
		id, err := plan.ParseSubtask(text)
		if err != nil {
			return refuse("sinks."+first, "its ledger has a position of %q", text)
		}
		o.Positions[id] = p
	}
	for _, s := range j.Sources {
		if p, ok := o.Positions[plan.SubtaskID{Vertex: plan.VertexID(s.Name)}]; !ok || p.IsZero() {
			return refuse("sources."+s.Name, "the ledgers have no position of it: its tables were still being copied")
		}
	}
	return o, nil
}

func samePosition(a, b position.Position) bool {
	order, ok := position.Compare(a, b)
	return ok && order == 0
}

// positions is a list of them for people.
func positions(all map[string]position.Position) string {
	var text []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		text = append(text, id+" "+all[id].String())
	}
	return strings.Join(text, ", ")
}
