package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// I1: the id that state hangs on follows from the user's name and the stage alone: not from the order of the text, from
// what else the job has, from its parallelism, nor from the attempt and the nodes that run it.
func TestI1StateHangsOnNames(t *testing.T) {
	t.Parallel()
	type stage struct {
		name string
		role Role
	}
	ids := func(text string) map[stage]VertexID {
		m, err := FromSpec(parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[stage]VertexID)
		for _, v := range m.Vertices {
			s := stage{v.Name, v.Role}
			if _, twice := found[s]; twice || slices.ContainsFunc(m.Vertices, func(o Vertex) bool { return o.ID == v.ID && o.Role != v.Role }) {
				t.Fatalf("stage %+v or its id %s is there twice", s, v.ID)
			}
			found[s] = v.ID
		}
		return found
	}
	want := ids(shopSpec)
	lines := strings.Split(shopSpec, "\n")
	reordered := slices.Clone(lines)
	reordered[3], reordered[4], reordered[6], reordered[7] = lines[4], lines[3], lines[7], lines[6]
	for name, text := range map[string]string{
		"another order": strings.Join(reordered, "\n"),
		"more stages": strings.NewReplacer(
			"sources:\n", "sources:\n  aaa: {type: generator}\n",
			"sinks:\n", "sinks:\n  aab: {from: [aaa], type: blackhole}\n").Replace(shopSpec),
		"other parallelism": strings.NewReplacer("readers: 3", "readers: 5", "writers: 2", "writers: 4").Replace(shopSpec),
	} {
		got := ids(text)
		for s, id := range want {
			if got[s] != id {
				t.Errorf("%s: the %s of %s is %q, was %q", name, s.role, s.name, got[s], id)
			}
		}
	}

	subtasks := func(a Attempt, name string) []SubtaskID {
		d, err := Deploy(shop(t), a, []Node{node(name, 99, "source:postgres", "source:generator", "sink:postgres", "sink:files")})
		if err != nil {
			t.Fatal(err)
		}
		return d.Subtasks()
	}
	one, other := subtasks(Attempt{Life: "l1", Fence: 7}, "a"), subtasks(Attempt{Life: "l2", Fence: 8}, "b")
	if !slices.Equal(one, other) {
		t.Errorf("another attempt on another node has other subtasks:\n%v\n%v", one, other)
	}
}

// I7: every combination of a source, a sink and a guarantee is judged as written here: exactly once needs a source that can
// be read again and a sink that commits exactly once, at least once that there are such a source and such a sink; nothing weaker
// than was asked for is taken silently.
func TestI7EveryCombinationIsJudged(t *testing.T) {
	t.Parallel()
	sources := map[string]bool{"postgres": true, "mysql": true, "generator": true, "edge": true, "webhook": false}
	sinks := map[string]bool{
		"postgres": true, "mysql": true, "files": true, "blackhole": true, "iceberg": true, "nats": true, "smtp": false,
	}
	guarantees := map[spec.Guarantee]bool{spec.ExactlyOnce: true, spec.AtLeastOnce: true, "": false}
	base := parse(t, shopSpec)
	for source, sourceOK := range sources {
		for sink, sinkOK := range sinks {
			for guarantee, guaranteeOK := range guarantees {
				j := *base
				j.Guarantee = guarantee
				j.Sources, j.Sinks = slices.Clone(base.Sources[:1]), slices.Clone(base.Sinks[1:])
				j.Sources[0].Type, j.Sinks[0].Type = source, sink
				m, err := FromSpec(&j)
				name := fmt.Sprintf("%s into %s, %q", source, sink, guarantee)
				if want := sourceOK && sinkOK && guaranteeOK; want != (err == nil) {
					t.Errorf("%s: %v", name, err)
				}
				if err == nil && m.Guarantee != Guarantee(guarantee) {
					t.Errorf("%s: planned as %s", name, m.Guarantee)
				}
				if e, coded := errors.AsType[*fault.Error](err); err != nil && (!coded || e.Where == "") {
					t.Errorf("%s is refused without code or place: %v", name, err)
				}
			}
		}
	}
	for level, want := range map[Level]bool{Transactional: true, Ordered: true, Idempotent: false, AppendOnly: false, "": false} {
		if level.exact() != want {
			t.Errorf("a sink that is %q is exactly once: %t", level, level.exact())
		}
	}
}

// I14: every link of a plan has its window before anything runs, and what a plan cannot bound is not deployed.
func TestI14NoDeploymentWithoutWindow(t *testing.T) {
	t.Parallel()
	p := shop(t)
	nodes := []Node{node("a", 999, "source:postgres", "source:generator", "sink:postgres", "sink:files")}
	d, err := Deploy(p, Attempt{Life: "l", Fence: 1}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	if w := d.Window; w.Bytes <= 0 || w.Messages <= 0 || w.Batch <= 0 || w.InFlight <= 0 || w.Batch > w.Bytes {
		t.Errorf("deployed with %+v", w)
	}
	for i := range p.Vertices {
		if r := p.Vertices[i].Role; r == Reader || r == Writer {
			p.Vertices[i].Parallelism = MaxParallelism
		}
	}
	if _, err := Deploy(p, Attempt{Life: "l", Fence: 1}, nodes); fault.CodeOf(err) != fault.SpecUnsupported {
		t.Errorf("a plan with more channels than windows: %v", err)
	}
}
