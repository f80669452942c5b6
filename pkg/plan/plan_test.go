package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const shopSpec = `apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${SHOP_URL}", tables: ["public.*"], snapshot: {mode: never}}
  bots: {type: generator, readers: 3}
sinks:
  warehouse: {from: [db, bots], type: postgres, url: "${WAREHOUSE_URL}", schema: shop, writers: 2}
  lake: {from: [db], type: files, mode: append, writers: 2, files: {path: /tmp/lake}}
`

func parse(t *testing.T, text string) *spec.Job {
	t.Helper()
	j, err := spec.Parse([]byte(text), "job.yaml")
	if err != nil {
		t.Fatalf("parse spec: %v", err)
	}
	return j
}

func shop(t *testing.T) Partitioned {
	t.Helper()
	m, err := FromSpec(parse(t, shopSpec))
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	return NewPartitioned(m)
}

func node(name string, free int, capabilities ...string) Node {
	return Node{Placement: Placement{Node: name, Incarnation: name + "-1"}, Capabilities: capabilities, Free: free}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and read the diff\n%s", path, got)
	}
}

func indent(t *testing.T, raw []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

func TestShopPlanGolden(t *testing.T) {
	t.Parallel()
	p := shop(t)
	golden(t, "shop.partitioned.json", indent(t, canonical(&p)))

	d, err := Deploy(p, Attempt{Life: "l1", Fence: 7, Spec: []byte(`{"job":"shop"}`)}, []Node{
		node("a", 8, "source:postgres", "source:generator"),
		node("b", 8, "sink:postgres", "sink:files", "source:generator"),
		node("c", 8, "sink:postgres", "sink:files"),
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "shop.deployment.json", indent(t, d.Bytes()))
}

// I3: nothing but the spec's meaning changes the plan.
func TestFingerprintIgnoresOrderOfText(t *testing.T) {
	t.Parallel()
	p := shop(t)
	lines := strings.Split(shopSpec, "\n")
	lines[3], lines[4] = lines[4], lines[3]
	lines[6], lines[7] = lines[7], lines[6]
	m, err := FromSpec(parse(t, strings.ReplaceAll(strings.Join(lines, "\n"), "[db, bots]", "[bots, db]")))
	if err != nil {
		t.Fatal(err)
	}
	q := NewPartitioned(m)
	if p.Fingerprint() != q.Fingerprint() {
		t.Errorf("the order of the text changed the plan:\n%s\n%s", canonical(&p), canonical(&q))
	}
	q.Vertices[1].Parallelism++
	if p.Fingerprint() == q.Fingerprint() {
		t.Error("another parallelism has the same fingerprint")
	}
}

func TestPartitionedRoundTripKeepsFingerprint(t *testing.T) {
	t.Parallel()
	p := shop(t)
	var q Partitioned
	if err := json.Unmarshal(canonical(&p), &q); err != nil {
		t.Fatal(err)
	}
	if p.Fingerprint() != q.Fingerprint() {
		t.Error("the JSON round trip changed the fingerprint")
	}
}

// I7: what the job asks for is refused when a stage cannot keep it.
func TestGuaranteeIsRefused(t *testing.T) {
	t.Parallel()
	j := parse(t, shopSpec)
	tests := []struct {
		name   string
		change func(*spec.Job)
		code   fault.Code
		where  string
	}{
		{"no known guarantee", func(j *spec.Job) { j.Guarantee = "at_most_once" }, fault.SpecUnsupported, "guarantee"},
		{"unknown source", func(j *spec.Job) { j.Sources[0].Type = "csv" }, fault.SpecUnsupported, "sources.db"},
		{"unknown sink", func(j *spec.Job) { j.Sinks[1].Type = "smtp" }, fault.SpecUnsupported, "sinks.lake"},
		{"missing source", func(j *spec.Job) { j.Sinks[0].From = []string{"nobody"} }, fault.SpecInvalid, "sinks.warehouse.from"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := *j
			c.Sources, c.Sinks = slices.Clone(j.Sources), slices.Clone(j.Sinks)
			tt.change(&c)
			_, err := FromSpec(&c)
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Code != tt.code || e.Where != tt.where {
				t.Errorf("FromSpec: %v, want %s at %s", err, tt.code, tt.where)
			}
		})
	}
}

func TestDeployIsDeterministicSpreadAndWithinCapacity(t *testing.T) {
	t.Parallel()
	p := shop(t)
	rapid.Check(t, func(t *rapid.T) {
		all := []string{"source:postgres", "source:generator", "sink:postgres", "sink:files"}
		var nodes []Node
		for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			caps := rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID[string]).Draw(t, "caps")
			nodes = append(nodes, node(string(rune('a'+i)), rapid.IntRange(0, 9).Draw(t, "free"), caps...))
		}
		d, err := Deploy(p, Attempt{Life: "l", Fence: 1}, nodes)
		shuffled := slices.Clone(nodes)
		rand.Shuffle(len(nodes), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		e, err2 := Deploy(p, Attempt{Life: "l", Fence: 1}, shuffled)
		if !bytes.Equal(d.Bytes(), e.Bytes()) || (err == nil) != (err2 == nil) {
			t.Fatalf("the order of the nodes changed the placement")
		}
		if err != nil {
			if fault.CodeOf(err) != fault.JobNoCapacity {
				t.Fatalf("Deploy: %v", err)
			}
			return
		}
		used := make(map[string]int)
		for _, s := range p.Subtasks() {
			at, ok := d.Placements[s]
			v, _ := p.Vertex(s.Vertex)
			i := slices.IndexFunc(nodes, func(n Node) bool { return n.Placement == at })
			if !ok || i < 0 || !nodes[i].Can(v.Capability) {
				t.Fatalf("%s on %+v", s, at)
			}
			used[at.Node]++
			if used[at.Node] > nodes[i].Free {
				t.Fatalf("node %s has room for %d", at.Node, nodes[i].Free)
			}
			if v.Name == "lake" && at != d.Placements[SubtaskID{Vertex: "lake"}] {
				t.Fatalf("%s is not with the other subtasks of the files sink", s)
			}
		}
	})
}

func TestDeploySpreadsReaders(t *testing.T) {
	t.Parallel()
	all := []string{"source:postgres", "source:generator", "sink:postgres", "sink:files"}
	d, err := Deploy(shop(t), Attempt{}, []Node{node("a", 9, all...), node("b", 9, all...), node("c", 9, all...)})
	if err != nil {
		t.Fatal(err)
	}
	on := make(map[string]bool)
	for i := range 3 {
		on[d.Placements[SubtaskID{Vertex: "bots", Index: i}].Node] = true
	}
	if len(on) != 3 {
		t.Errorf("three readers on %d of three nodes: %v", len(on), d.Placements)
	}
}

func TestNoCapacityNamesTheService(t *testing.T) {
	t.Parallel()
	_, err := Deploy(shop(t), Attempt{}, []Node{node("a", 99, "sink:files", "sink:postgres", "source:generator")})
	e := fault.Of(err)
	if e.Code != fault.JobNoCapacity || !strings.Contains(e.Remedy, "weir serve cdc-postgres") {
		t.Errorf("Deploy: %v; remedy %q", err, e.Remedy)
	}
}

// I14: channels x window <= 128 MiB, publishes under way <= 64 MiB, whatever the parallelism.
func TestWindowBounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		readers, writers int
		bytes, batch     int64
		refused          bool
	}{
		{readers: 1, writers: 1, bytes: 4 << 20, batch: 256 << 10},
		{readers: 4, writers: 8, bytes: (128 << 20) / 40, batch: 256 << 10},
		{readers: 16, writers: 16, bytes: (128 << 20) / 288, batch: (128 << 20) / 288 / 8},
		{readers: 64, writers: 64, refused: true},
	} {
		m := Model{Vertices: []Vertex{
			{ID: "s_enum", Role: Enumerator, Parallelism: 1},
			{ID: "s", Role: Reader, Parallelism: tt.readers},
			{ID: "t", Role: Writer, Parallelism: tt.writers},
		}, Edges: []Edge{
			{From: "s_enum", To: "s", Partition: Broadcast},
			{From: "s", To: "s_enum", Partition: Rebalance, Feedback: true},
			{From: "s", To: "t", Partition: Hash},
		}}
		p := NewPartitioned(m)
		w, err := WindowFor(&p)
		if tt.refused {
			if fault.CodeOf(err) != fault.SpecUnsupported {
				t.Errorf("%d x %d: %v, %+v; want it refused", tt.readers, tt.writers, err, w)
			}
			continue
		}
		if err != nil || w.Bytes != tt.bytes || w.Batch != tt.batch || w.Messages != 64 {
			t.Errorf("%d x %d: %+v, %v; want %d and %d", tt.readers, tt.writers, w, err, tt.bytes, tt.batch)
		}
		channels := int64(2*tt.readers + tt.readers*tt.writers)
		if channels*w.Bytes > 128<<20 || int64(1+tt.readers)*w.InFlight > 64<<20 {
			t.Errorf("%d x %d: %+v exceeds the job's bounds", tt.readers, tt.writers, w)
		}
	}
}
