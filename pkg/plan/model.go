package plan

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// FromSpec turns a job spec into stages and links: a source becomes an enumerator and its readers, a sink its writers
// and a committer. Stages are in the order of their names, so that the order of the text does not change the plan.
// The error is a *fault.Error: GUARANTEE names the stage that cannot keep what the job asks for (I7), SPEC_UNSUPPORTED
// what this build does not have, SINK_OWN_SOURCE a sink that writes into tables which the job reads.
func FromSpec(j *spec.Job) (Model, error) {
	m := Model{Job: j.Name, Guarantee: Guarantee(j.Guarantee)}
	if m.Guarantee != ExactlyOnce && m.Guarantee != AtLeastOnce {
		return Model{}, fault.New(fault.SpecUnsupported, "guarantee", fmt.Sprintf("%s is not supported by this build", j.Guarantee))
	}
	sources := slices.SortedFunc(slices.Values(j.Sources), func(a, b spec.Source) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range sources {
		if err := checkSource(s, m.Guarantee); err != nil {
			return Model{}, err
		}
		m.addSource(s)
	}
	sinks := slices.SortedFunc(slices.Values(j.Sinks), func(a, b spec.Sink) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range sinks {
		if err := checkSink(s, m.Guarantee); err != nil {
			return Model{}, err
		}
		if err := m.addSink(s); err != nil {
			return Model{}, err
		}
	}
	return m, checkLoops(j)
}

func checkSource(s spec.Source, g Guarantee) error {
	where := "sources." + s.Name
	switch r, ok := SourceReplay(s.Type); {
	case !ok:
		return fault.New(fault.SpecUnsupported, where, fmt.Sprintf("sources of type %s are not supported by this build", s.Type))
	case r != Replayable && g == ExactlyOnce:
		return fault.New(fault.JobGuarantee, where, fmt.Sprintf("a source of type %s cannot be read again after a failure (%s)", s.Type, r))
	}
	return nil
}

func checkSink(s spec.Sink, g Guarantee) error {
	where := "sinks." + s.Name
	switch l, ok := LevelOf(s); {
	case !ok:
		return fault.New(fault.SpecUnsupported, where, fmt.Sprintf("sinks of type %s are not supported by this build", s.Type))
	case !l.exact() && g == ExactlyOnce:
		return fault.New(fault.JobGuarantee, where, fmt.Sprintf("a sink of type %s can only be %s", s.Type, l))
	}
	return nil
}

func (m *Model) addSource(s spec.Source) {
	readers, enum := VertexID(s.Name), EnumeratorOf(s.Name)
	capability := SourceCapability(s.Type)
	m.Vertices = append(m.Vertices,
		Vertex{ID: enum, Role: Enumerator, Name: s.Name, Capability: capability, Parallelism: 1},
		Vertex{ID: readers, Role: Reader, Name: s.Name, Capability: capability, Parallelism: s.Config.Parallelism()},
	)
	m.Edges = append(m.Edges,
		Edge{From: enum, To: readers, Partition: Broadcast},
		Edge{From: readers, To: enum, Partition: Rebalance, Feedback: true},
	)
}

func (m *Model) addSink(s spec.Sink) error {
	capability := SinkCapability(s.Type)
	writers := VertexID(s.Name)
	m.Vertices = append(m.Vertices,
		Vertex{ID: writers, Role: Writer, Name: s.Name, Capability: capability, Parallelism: s.Writers},
		Vertex{ID: CommitterOf(s.Name), Role: Committer, Name: s.Name, Capability: capability, Parallelism: 1},
	)
	for _, from := range slices.Sorted(slices.Values(s.From)) {
		if _, ok := m.Vertex(VertexID(from)); !ok {
			return fault.New(fault.SpecInvalid, "sinks."+s.Name+".from", fmt.Sprintf("there is no source %q", from))
		}
		m.Edges = append(m.Edges, Edge{From: VertexID(from), To: writers, Partition: Hash})
	}
	return nil
}
