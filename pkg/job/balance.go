package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// steadyRoster is for how long the processes must have been the same before work is moved between them: those that start
// together are moved to once.
const steadyRoster = 3 * time.Second

// markedly is how much more evenly the subtasks must lie after a move. A move is an attempt: it is not worth one subtask.
const markedly = 2

// roster is who was there, since when, and the last move.
type roster struct {
	// Who names the processes and what they say of themselves, but not the room that other jobs leave.
	Who   string    `json:"who,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Moved is the roster for which work was moved last, Fence the attempt that was given up for it.
	Moved string      `json:"moved,omitempty"`
	Fence fence.Token `json:"fence,omitempty"`
}

// met notes who is there.
func (r *roster) met(m Moment, nodes []LiveNode, settled bool) {
	var all []string
	for _, n := range nodes {
		all = append(all, fmt.Sprintf("%s/%s/%v/%s", n.Node.Node, n.Incarnation, n.Leaving, strings.Join(n.Capabilities, ",")))
	}
	slices.Sort(all)
	who := strings.Join(all, " ")
	switch {
	case !settled:
		r.Who = ""
	case r.Who != who:
		r.Who, r.Since = who, m.At
	}
}

// uneven decides, right behind a durable epoch that h names, whether the processes that are there now would carry the
// subtasks markedly more evenly than those that were there when the attempt was placed. Nothing is lost by a move then, and
// nothing read twice. It happens once for a roster, so that two jobs which give way to each other come to rest.
func (s *State) uneven(m Moment, h *Head) (c cause, found bool) {
	r := &s.Roster
	switch {
	case h.Phase != Running, h.InFlight != nil, h.Durable.Fence != h.Fence:
		return cause{}, false
	case !s.NodesKnown, !s.Settled, r.Who == "", m.At.Sub(r.Since) < steadyRoster:
		return cause{}, false
	case r.Moved == r.Who && h.Fence > r.Fence, len(s.Attempt.Waiting) > 0:
		return cause{}, false
	}
	able := s.able()
	next, err := plan.Deploy(s.Spec.Plan, plan.Attempt{Life: h.Life, Fence: h.Fence, Spec: s.Spec.Raw}, able)
	if err != nil {
		return cause{}, false
	}
	why := moreEven(s.Attempt.Plan, &next, able)
	if why == "" {
		return cause{}, false
	}
	r.Moved, r.Fence = r.Who, h.Fence
	return cause{Kind: RestartFree, Reason: Reason{Code: "REBALANCE", Text: why}}, true
}

// able lists the processes that take subtasks.
func (s *State) able() []plan.Node {
	var able []plan.Node
	for _, n := range s.Nodes {
		if !n.Leaving {
			able = append(able, n.Node)
		}
	}
	return able
}

// moreEven says, for the first capability of the plan whose subtasks would lie markedly more evenly on the nodes, what would
// change; empty when there is none.
func moreEven(now, next *plan.Deployment, nodes []plan.Node) string {
	var seen []string
	for _, v := range now.Vertices {
		if slices.Contains(seen, v.Capability) {
			continue
		}
		seen = append(seen, v.Capability)
		have, want := loadOf(now, v.Capability, nodes), loadOf(next, v.Capability, nodes)
		if have.spread()-want.spread() >= markedly || have.least == 0 && want.least > 0 && have.most >= markedly {
			return fmt.Sprintf("%s: %d to %d subtasks on a process become %d to %d", v.Capability, have.least, have.most, want.least, want.most)
		}
	}
	return ""
}

// load is the fewest and the most subtasks with a capability that one of the nodes which offer it carries.
type load struct{ least, most int }

func (l load) spread() int { return l.most - l.least }

func loadOf(d *plan.Deployment, capability string, nodes []plan.Node) load {
	carries := make(map[string]int)
	for id, at := range d.Placements {
		if v, ok := d.Vertex(id.Vertex); ok && v.Capability == capability {
			carries[at.Node]++
		}
	}
	var l load
	first := true
	for _, n := range nodes {
		if !n.Can(capability) {
			continue
		}
		c := carries[n.Node]
		if first {
			l, first = load{c, c}, false
		}
		l.least, l.most = min(l.least, c), max(l.most, c)
	}
	return l
}
