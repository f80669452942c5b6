package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
)

// Node is a process that can take subtasks.
type Node struct {
	Placement
	Capabilities []string `json:"capabilities"`
	// Free is how many more subtasks it will run.
	Free int `json:"free"`
}

// Can reports whether the node offers the capability.
func (n Node) Can(capability string) bool { return slices.Contains(n.Capabilities, capability) }

// Attempt is what a deployment adds to the plan besides places.
type Attempt struct {
	Life  string
	Fence fence.Token
	// Spec is the canonical job spec.
	Spec json.RawMessage
}

// Deploy puts every subtask on a node that can run it and has room, spread as evenly as capabilities allow: first over
// nodes with the fewest subtasks of the same vertex, then of the job, then those with the most room, then by name. The
// same input gives the same placement, in whatever order the nodes come. When a subtask finds no place the error is
// NO_CAPACITY and names the service to start.
func Deploy(p Partitioned, a Attempt, nodes []Node) (Deployment, error) {
	w, err := WindowFor(&p)
	if err != nil {
		return Deployment{}, err
	}
	d := Deployment{
		Partitioned: p, Life: a.Life, Fence: a.Fence, Fingerprint: p.Fingerprint(),
		Window: w, Placements: make(map[SubtaskID]Placement), Spec: a.Spec,
	}
	l := layout{nodes: slices.Clone(nodes), total: make(map[string]int), ofVertex: make(map[placeKey]int)}
	for _, u := range units(&p) {
		at, ok := l.best(u)
		if !ok {
			return Deployment{}, noPlace(u, nodes)
		}
		for _, s := range u.subtasks {
			d.Placements[s] = at
			l.take(at.Node, s.Vertex)
		}
	}
	return d, nil
}

// Bytes is the canonical JSON of the deployment, as it is stored and digested.
func (d *Deployment) Bytes() []byte { return canonical(d) }

// unit is a set of subtasks that share a node.
type unit struct {
	subtasks   []SubtaskID
	capability string
}

// units lists what has to be placed. Subtasks that share a node come first: they need the most room in one place.
func units(p *Partitioned) []unit {
	var joint, single []unit
	for _, v := range p.Vertices {
		together := colocated(v.Capability)
		for i := range v.Parallelism {
			s := SubtaskID{Vertex: v.ID, Index: i}
			if !together {
				single = append(single, unit{subtasks: []SubtaskID{s}, capability: v.Capability})
				continue
			}
			at := slices.IndexFunc(joint, func(u unit) bool {
				first, _ := p.Vertex(u.subtasks[0].Vertex)
				return first.Name == v.Name
			})
			if at < 0 {
				joint = append(joint, unit{capability: v.Capability})
				at = len(joint) - 1
			}
			joint[at].subtasks = append(joint[at].subtasks, s)
		}
	}
	return append(joint, single...)
}

type placeKey struct {
	node   string
	vertex VertexID
}

// layout is the room that is left while a plan is being placed.
type layout struct {
	nodes    []Node
	total    map[string]int
	ofVertex map[placeKey]int
}

func (l *layout) best(u unit) (Placement, bool) {
	var fit []Node
	for _, n := range l.nodes {
		if n.Can(u.capability) && n.Free-l.total[n.Node] >= len(u.subtasks) {
			fit = append(fit, n)
		}
	}
	if len(fit) == 0 {
		return Placement{}, false
	}
	vertex := u.subtasks[0].Vertex
	best := slices.MinFunc(fit, func(a, b Node) int {
		return cmp.Or(
			cmp.Compare(l.ofVertex[placeKey{a.Node, vertex}], l.ofVertex[placeKey{b.Node, vertex}]),
			cmp.Compare(l.total[a.Node], l.total[b.Node]),
			cmp.Compare(b.Free-l.total[b.Node], a.Free-l.total[a.Node]),
			cmp.Compare(a.Node, b.Node),
		)
	})
	return best.Placement, true
}

func (l *layout) take(node string, v VertexID) {
	l.total[node]++
	l.ofVertex[placeKey{node, v}]++
}

func noPlace(u unit, nodes []Node) error {
	able := 0
	for _, n := range nodes {
		if n.Can(u.capability) {
			able++
		}
	}
	why := fmt.Sprintf("no live process offers %s", u.capability)
	switch {
	case able > 0 && len(u.subtasks) > 1:
		why = fmt.Sprintf("%d processes offer %s, none has room for the %d subtasks that must share one", able, u.capability, len(u.subtasks))
	case able > 0:
		why = fmt.Sprintf("%d processes offer %s, all are full", able, u.capability)
	}
	return fault.New(fault.JobNoCapacity, u.subtasks[0].String(), why, "role", ServiceOf(u.capability))
}
