package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/spec"
)

// Resnapshot has tables, given as schema.table in the notation of the spec, copied anew while the log waits; none means all.
// Whatever would stop it later is refused before anything is asked: [fault.CLIResnapshot]. It returns when an attempt has
// the order; the copy itself takes as long as it takes.
func (c *Client) Resnapshot(ctx context.Context, name string, tables []string) (Asked, error) {
	if err := c.allowed(ctx, name, "resnapshot", job.Starting, job.Running, job.Suspended, job.Failed); err != nil {
		return Asked{}, err
	}
	h, j, err := c.current(ctx, name)
	if err != nil {
		return Asked{}, err
	}
	names, err := resnapshotted(j, tables)
	if err != nil {
		return Asked{}, err
	}
	if open := h.Ordered(); open != nil {
		names = open.And(names) // it has not become durable, so the new order takes its place
	}
	var seq uint64
	change := func(i job.Intent, request string, at time.Time) job.Intent {
		all := names
		if i.Resnapshot != nil && i.Resnapshot.Seq > h.Handled.Resnapshot {
			all = i.Resnapshot.And(names)
		}
		i = i.Resnapshotted(all, request, at)
		seq = i.Resnapshot.Seq
		return i
	}
	h, err = c.ask(ctx, name, change, func(h *job.Head) bool { return h.Handled.Resnapshot >= seq || over(h.Phase) })
	if err != nil {
		return Asked{}, err
	}
	return asked(h, "nothing can; `weir status "+name+"` shows how far the copy is"), nil
}

// resnapshotted checks an order against the spec and returns the tables by their names in reports and batches.
func resnapshotted(j *spec.Job, tables []string) (names []string, err error) {
	refused := func(where, why, remedy string) error {
		e := fault.New(fault.CLIResnapshot, where, why)
		e.Remedy = remedy
		return e
	}
	affected := make(map[string]bool)
	for _, text := range tables {
		p, err := spec.ParseTablePattern(text)
		schema, table, exact := p.Exact()
		if err != nil || !exact || p.Excludes() {
			return nil, refused(text, "a table is schema.table, without stars", "Name the table as `weir status` shows it.")
		}
		known := false
		for _, s := range j.Sources {
			if captured, ok := copied(s.Config); ok && captured.Match(schema, table) {
				known, affected[s.Name] = true, true
			}
		}
		if !known {
			return nil, refused(text, "no source of the job captures the table", "`weir status "+j.Name+"` shows the tables.")
		}
		names = append(names, schema+"."+table)
	}
	for _, s := range j.Sources {
		if _, ok := copied(s.Config); ok && len(tables) == 0 {
			affected[s.Name] = true
		}
	}
	if len(affected) == 0 {
		return nil, refused(j.Name, "no source of the job has a snapshot", "Nothing has to be copied.")
	}
	for _, k := range j.Sinks {
		if !slices.ContainsFunc(k.From, func(from string) bool { return affected[from] }) {
			continue
		}
		if target, ok := k.Config.(spec.TableSink); ok && k.Mode == spec.Upsert && !target.Allows(spec.AllowTruncate) {
			what := "every table"
			if len(tables) > 0 {
				what = strings.Join(tables, ", ")
			}
			return nil, refused("sinks."+k.Name, fmt.Sprintf("the order empties %s at the sink before the rows come again, and the sink does not allow it", what),
				fmt.Sprintf("Set allow: [truncate] at sinks.%s and submit the job anew.", k.Name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// copied are the tables of a source that copies any.
func copied(c spec.SourceConfig) (captured spec.Tables, ok bool) {
	switch c := c.(type) {
	case *spec.PostgresSource:
		return c.Tables, true
	case *spec.MySQLSource:
		return c.Tables, true
	}
	return nil, false
}
