package plan

import "slices"

// Vertex returns the vertex with this id.
func (m *Model) Vertex(id VertexID) (Vertex, bool) {
	at := slices.IndexFunc(m.Vertices, func(v Vertex) bool { return v.ID == id })
	if at < 0 {
		return Vertex{}, false
	}
	return m.Vertices[at], true
}

// Subtasks lists every parallel instance in the order of the vertices.
func (m *Model) Subtasks() []SubtaskID {
	var all []SubtaskID
	for _, v := range m.Vertices {
		for i := range v.Parallelism {
			all = append(all, SubtaskID{Vertex: v.ID, Index: i})
		}
	}
	return all
}

// Ackers lists the subtasks whose ack an epoch needs: all but the committers, which act on manifests.
func (m *Model) Ackers() []SubtaskID {
	return slices.DeleteFunc(m.Subtasks(), func(s SubtaskID) bool {
		v, _ := m.Vertex(s.Vertex)
		return v.Role == Committer
	})
}

// Channels lists the channels of one edge, ordered by sender and receiver.
func (m *Model) Channels(e Edge) []Channel {
	from, _ := m.Vertex(e.From)
	to, _ := m.Vertex(e.To)
	var all []Channel
	for i := range from.Parallelism {
		for j := range to.Parallelism {
			if e.Partition == Forward && i != j {
				continue
			}
			all = append(all, Channel{From: SubtaskID{e.From, i}, To: SubtaskID{e.To, j}})
		}
	}
	return all
}

// Inputs lists the channels that end in a subtask, feedback apart.
func (m *Model) Inputs(s SubtaskID) (data, feedback []Channel) {
	for _, e := range m.Edges {
		if e.To != s.Vertex {
			continue
		}
		for _, c := range m.Channels(e) {
			switch {
			case c.To != s:
			case e.Feedback:
				feedback = append(feedback, c)
			default:
				data = append(data, c)
			}
		}
	}
	return data, feedback
}

// Outputs lists the edges that leave a vertex, feedback included.
func (m *Model) Outputs(v VertexID) []Edge {
	return slices.DeleteFunc(slices.Clone(m.Edges), func(e Edge) bool { return e.From != v })
}
