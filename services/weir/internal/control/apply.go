package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

// Application says what became of an apply.
type Application struct {
	Job   string    `json:"job"`
	Phase job.Phase `json:"phase"`
	// Epoch is the first durable epoch that has the spec.
	Epoch epoch.ID `json:"epoch"`
	// Settings are the paths in the spec that changed; none when the spec is the one that ran.
	Settings []string `json:"settings"`
	// Added and Removed are the tables that are captured now and were not, and those that were and are not, by source.
	// Tables says whether both could be found out: a job that was not running before reports no tables.
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Tables  bool     `json:"tables"`
	// Undo is the command that takes it back.
	Undo string `json:"undo"`
}

// Apply has a job go on from its durable epoch under another spec, or under the one it has with the tables that its patterns
// match today. Only what may change within a life may differ; anything else is [fault.CLIApply], and nothing is asked then. It
// returns when an epoch under the spec is durable.
func (c *Client) Apply(ctx context.Context, j *spec.Job) (Application, error) {
	if _, err := plan.FromSpec(j); err != nil {
		return Application{}, err
	}
	if err := c.allowed(ctx, j.Name, "apply", job.Starting, job.Running, job.Suspended, job.Failed); err != nil {
		return Application{}, err
	}
	h, running, err := c.current(ctx, j.Name)
	if err != nil {
		return Application{}, err
	}
	changed, err := inPlace(running, j)
	if err != nil {
		return Application{}, err
	}
	before, known := c.captured(ctx, j.Name, h.Phase == job.Running)
	digest, err := c.reg.PutSpec(ctx, j)
	if err != nil {
		return Application{}, fmt.Errorf("store the spec of %s: %w", j.Name, err)
	}
	var seq uint64
	change := func(i job.Intent, request string, at time.Time) job.Intent {
		i = i.Applying(digest, request, at)
		seq = i.Applied.Seq
		return i
	}
	if _, err := c.ask(ctx, j.Name, change, func(h *job.Head) bool { return h.Handled.Applied >= seq || over(h.Phase) }); err != nil {
		return Application{}, err
	}
	h, err = c.Await(ctx, j.Name, func(h *job.Head) (bool, error) {
		switch {
		case h == nil:
			return false, nil
		case h.Phase.AtRest():
			return false, reasonFault(h)
		}
		return h.Applied != nil && h.Applied.Seq >= seq && h.Applied.Epoch > 0, nil
	})
	if err != nil {
		return Application{}, err
	}
	a := Application{
		Job: j.Name, Phase: h.Phase, Epoch: h.Applied.Epoch, Settings: changed, Added: []string{}, Removed: []string{},
		Undo: "weir job apply with the file as it was; a table that comes back is copied anew",
	}
	now, there := c.captured(ctx, j.Name, true)
	if a.Tables = known && there; a.Tables {
		a.Added, a.Removed = beyond(now, before), beyond(before, now)
	}
	return a, nil
}

// reportTime is how long the report of a source is waited for; one is made each second.
const reportTime = 5 * time.Second

// captured lists the tables that the sources of a job report, as source/table; ok is false when one does not report in time.
func (c *Client) captured(ctx context.Context, name string, reports bool) (tables map[string]bool, ok bool) {
	if !reports {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, err := c.Status(ctx, name); err == nil {
			if tables, ok = tablesOf(s); ok {
				return tables, true
			}
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-tick.C:
		}
	}
}

func tablesOf(s Status) (tables map[string]bool, ok bool) {
	tables = make(map[string]bool)
	for _, src := range s.Sources {
		if src.Enumerator == nil {
			return nil, false
		}
		for _, t := range src.Enumerator.Tables {
			if t.Lifecycle != report.Unknown {
				tables[src.Name+"/"+t.Name] = true
			}
		}
	}
	return tables, true
}

// beyond lists what a has and b has not.
func beyond(a, b map[string]bool) []string {
	more := []string{}
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if !b[k] {
			more = append(more, k)
		}
	}
	return more
}

// mayChange are the paths that may differ between two specs of one life, with a star for a name. None of them is part of what
// a state, a plan or a target was made for.
var mayChange = []string{
	"epoch.*", "restart.*",
	"sources.*.url", "sources.*.tables", "sources.*.readers", "sources.*.heartbeat", "sources.*.snapshot.chunk_rows",
	"sinks.*.writers", "sinks.*.allow",
}

// inPlace lists the paths at which two specs differ. One that may not change within a life is an error that names it.
func inPlace(running, wanted *spec.Job) ([]string, error) {
	paths := []string{}
	for _, p := range differences("", decoded(running), decoded(wanted)) {
		if !slices.ContainsFunc(mayChange, func(may string) bool { return matches(may, p) }) || !follows(running, p) {
			return nil, fault.New(fault.CLIApply, p, "this part of a spec cannot change while the job lives", "job", running.Name, "path", p)
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// follows reports whether what a path is of can take a change in. The position of a MySQL source says whether another server has
// its history; a slot of PostgreSQL is at one server.
func follows(running *spec.Job, path string) bool {
	parts := strings.Split(path, ".")
	if parts[0] != "sources" {
		return true
	}
	s, _ := running.Source(parts[1])
	switch s.Config.(type) {
	case *spec.PostgresSource:
		return parts[2] != "url"
	case *spec.MySQLSource:
		return true
	default:
		return false
	}
}

// decoded is a spec as plain maps and lists, with the defaults written out.
func decoded(j *spec.Job) map[string]any {
	var m map[string]any
	if err := json.Unmarshal(j.Canonical(), &m); err != nil {
		panic("control: a canonical spec is not JSON: " + err.Error())
	}
	return m
}

// differences lists the paths of leaves and lists that differ, or that only one of both has.
func differences(at string, a, b map[string]any) []string {
	var paths []string
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		path := strings.TrimPrefix(at+"."+k, ".")
		x, isMap := a[k].(map[string]any)
		y, both := b[k].(map[string]any)
		switch {
		case isMap && both:
			paths = append(paths, differences(path, x, y)...)
		case !reflect.DeepEqual(a[k], b[k]):
			paths = append(paths, path)
		}
	}
	return paths
}

// matches compares a path with a pattern name by name.
func matches(pattern, path string) bool {
	want, got := strings.Split(pattern, "."), strings.Split(path, ".")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != "*" && want[i] != got[i] {
			return false
		}
	}
	return true
}
