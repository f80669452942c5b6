package support

import (
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
)

// bare is a manifest without what subtasks and sinks keep in it: keys that bound pieces of tables, and rows that are small
// enough to travel inline. Its digest is that of the whole one.
func bare(l epoch.Link) any {
	m := *l.Manifest
	m.Subtasks = make(map[plan.SubtaskID]epoch.SubtaskState, len(l.Manifest.Subtasks))
	sizes := make(map[string]int)
	for id, st := range l.Manifest.Subtasks {
		if n := len(st.State.Inline); n > 0 {
			sizes["state of "+id.String()] = n
		}
		st.State.Inline = nil
		m.Subtasks[id] = st
	}
	m.Sinks = make(map[string]epoch.SinkState, len(l.Manifest.Sinks))
	for name, k := range l.Manifest.Sinks {
		staged := make([]epoch.Staged, len(k.Staged))
		for i, s := range k.Staged {
			sizes[fmt.Sprintf("staged data of %s, epoch %s", s.Subtask, s.Epoch)] += len(s.Data)
			s.Data = json.RawMessage("null")
			staged[i] = s
		}
		k.Staged = staged
		m.Sinks[name] = k
	}
	return struct {
		Digest string `json:"digest"`
		// LeftOut tells the sizes in bytes of what is not here.
		LeftOut  map[string]int  `json:"leftOut,omitempty"`
		Manifest *epoch.Manifest `json:"manifest"`
	}{l.Ref.Digest, sizes, &m}
}

// withoutSpec is a plan without its copy of the spec, which is beside it, redacted.
func withoutSpec(d *plan.Deployment) *plan.Deployment {
	c := *d
	c.Spec = json.RawMessage("null")
	return &c
}
