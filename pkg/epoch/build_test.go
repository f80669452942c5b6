package epoch

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

var (
	enum   = plan.SubtaskID{Vertex: "db_enum"}
	reader = plan.SubtaskID{Vertex: "db"}
	left   = plan.SubtaskID{Vertex: "out"}
	right  = plan.SubtaskID{Vertex: "out", Index: 1}
	toRead = plan.Channel{From: enum, To: reader}
	toLeft = plan.Channel{From: reader, To: left}
	toRght = plan.Channel{From: reader, To: right}
	when   = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
)

func deployment() *plan.Deployment {
	d := &plan.Deployment{Life: "life", Fence: 3, Fingerprint: "fp"}
	d.Partitioned = plan.NewPartitioned(plan.Model{
		Job: "shop", Guarantee: plan.ExactlyOnce,
		Vertices: []plan.Vertex{
			{ID: "db_enum", Role: plan.Enumerator, Name: "db", Parallelism: 1},
			{ID: "db", Role: plan.Reader, Name: "db", Parallelism: 1},
			{ID: "out", Role: plan.Writer, Name: "out", Parallelism: 2},
			{ID: "out_commit", Role: plan.Committer, Name: "out", Parallelism: 1},
		},
		Edges: []plan.Edge{
			{From: "db_enum", To: "db", Partition: plan.Broadcast},
			{From: "db", To: "db_enum", Partition: plan.Rebalance, Feedback: true},
			{From: "db", To: "out", Partition: plan.Hash},
		},
	})
	return d
}

func tally(n uint64) Tally { return Tally{Messages: n, Rows: 10 * n, Hash: 99 * n} }

func pieces(s plan.SubtaskID, epochs ...ID) []Staged {
	var all []Staged
	for _, e := range epochs {
		all = append(all, Staged{Epoch: e, Subtask: s, Data: json.RawMessage(`{"a>b":1}`), Rows: 5})
	}
	return all
}

// balanced are the acks of an epoch at which n messages have crossed each data channel.
func balanced(e ID, n uint64) map[plan.SubtaskID]Ack {
	rows := 20 * n
	return map[plan.SubtaskID]Ack{
		enum: {Fence: 3, Subtask: enum, Epoch: e, Out: map[plan.Channel]Tally{toRead: tally(1)}},
		reader: {
			Fence: 3, Subtask: reader, Epoch: e, Position: position.New(position.Generator, map[string]string{"i": "7"}),
			In: map[plan.Channel]Tally{toRead: tally(1)}, Out: map[plan.Channel]Tally{toLeft: tally(n), toRght: tally(n)},
			Tables: map[string]Counts{"orders": {Out: rows}},
		},
		left: {
			Fence: 3, Subtask: left, Epoch: e, In: map[plan.Channel]Tally{toLeft: tally(n)}, Staged: pieces(left, e),
			Tables: map[string]Counts{"orders": {In: 10 * n, Out: 10*n - 1, Dead: 1}},
		},
		right: {
			Fence: 3, Subtask: right, Epoch: e, In: map[plan.Channel]Tally{toRght: tally(n)},
			Tables: map[string]Counts{"orders": {In: 10 * n, Out: 10 * n}},
		},
	}
}

func cut(e ID) Cut {
	return Cut{Epoch: e, Kind: Periodic, Term: 2, Triggered: when, Completed: when.Add(time.Second)}
}

func build(t *testing.T, e ID, n uint64, prev *Link) Link {
	t.Helper()
	var p *Manifest
	var ref Ref
	if prev != nil {
		p, ref = prev.Manifest, prev.Ref
	}
	m, err := Build(deployment(), cut(e), p, ref, balanced(e, n))
	if err != nil {
		t.Fatalf("build epoch %d: %v", e, err)
	}
	b, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return Link{Ref: Ref{Epoch: e, Digest: Digest(b)}, Manifest: m}
}

// Each part that a balanced epoch needs is taken away or changed once: the epoch is refused and the place named.
func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(map[plan.SubtaskID]Ack)
		want   error
		text   string
	}{
		{"a missing ack", func(a map[plan.SubtaskID]Ack) { delete(a, right) }, ErrIncomplete, "out-1"},
		{"an ack of another fence", func(a map[plan.SubtaskID]Ack) { x := a[left]; x.Fence = 2; a[left] = x }, ErrIncomplete, "fence 2"},
		{"an ack of another epoch", func(a map[plan.SubtaskID]Ack) { x := a[left]; x.Epoch = 8; a[left] = x }, ErrIncomplete, "epoch 8"},
		{"a channel the sender does not tell", func(a map[plan.SubtaskID]Ack) { delete(a[reader].Out, toRght) }, ErrIncomplete, "db-0>out-1"},
		{"a channel the receiver does not tell", func(a map[plan.SubtaskID]Ack) { delete(a[left].In, toLeft) }, ErrIncomplete, "db-0>out-0"},
		{"a lost message", func(a map[plan.SubtaskID]Ack) { a[left].In[toLeft] = tally(3) }, ErrUnbalanced, "db-0>out-0"},
		{"a changed message", func(a map[plan.SubtaskID]Ack) {
			x := a[left].In[toLeft]
			x.Hash++
			a[left].In[toLeft] = x
		}, ErrUnbalanced, "db-0>out-0"},
		{"a lost message to a reader", func(a map[plan.SubtaskID]Ack) { a[reader].In[toRead] = tally(0) }, ErrUnbalanced, "db_enum-0>db-0"},
		{"a channel that went back", func(a map[plan.SubtaskID]Ack) {
			a[reader].Out[toLeft], a[left].In[toLeft] = tally(1), tally(1)
		}, ErrUnbalanced, "fewer"},
		{"a row that vanished in a writer", func(a map[plan.SubtaskID]Ack) {
			a[left].Tables["orders"] = Counts{In: 40, Out: 38, Dead: 1}
		}, ErrUnbalanced, "orders"},
		{"a row that nobody sent", func(a map[plan.SubtaskID]Ack) { a[reader].Tables["orders"] = Counts{Out: 79} }, ErrUnbalanced, "orders"},
		{"a table that nobody took", func(a map[plan.SubtaskID]Ack) { a[reader].Tables["items"] = Counts{Out: 1} }, ErrUnbalanced, "items"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			prev := build(t, 4, 2, nil)
			acks := balanced(7, 4)
			if _, err := Build(deployment(), cut(7), prev.Manifest, prev.Ref, acks); err != nil {
				t.Fatalf("the unchanged epoch: %v", err)
			}
			tt.change(acks)
			_, err := Build(deployment(), cut(7), prev.Manifest, prev.Ref, acks)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Build: %v; want %v naming %q", err, tt.want, tt.text)
			}
		})
	}
}

func TestBuildLinksCountsAndNamesLedger(t *testing.T) {
	t.Parallel()
	first := build(t, 4, 2, nil)
	second := build(t, 7, 4, &first)
	m := second.Manifest
	if m.Prev != first.Ref || m.Sinks["out"].Prev != first.Ref {
		t.Errorf("prev %+v, ledger %+v; want %+v", m.Prev, m.Sinks["out"].Prev, first.Ref)
	}
	if got, want := m.Channels[toLeft].Delta, tally(2); got != want {
		t.Errorf("delta %+v, want %+v", got, want)
	}
	if got, want := m.Tables["orders"], (Counts{In: 80, Out: 79, Dead: 1}); got != want {
		t.Errorf("tables of the life %+v, want %+v", got, want)
	}

	// An epoch that stages nothing leaves the ledger where it is.
	acks := balanced(9, 4)
	x := acks[left]
	x.Staged = nil
	acks[left] = x
	third, err := Build(deployment(), cut(9), m, second.Ref, acks)
	if err != nil {
		t.Fatal(err)
	}
	if got := third.LedgerOf("out", Ref{Epoch: 9, Digest: "d"}); got != second.Ref {
		t.Errorf("ledger after an empty epoch %+v, want %+v", got, second.Ref)
	}

	// Another attempt counts from zero again, the life's totals go on.
	d := deployment()
	d.Fence = 4
	again := balanced(11, 1)
	for s, a := range again {
		a.Fence = 4
		again[s] = a
	}
	fourth, err := Build(d, cut(11), third, Ref{Epoch: 9, Digest: "d"}, again)
	if err != nil {
		t.Fatal(err)
	}
	if got := fourth.Channels[toLeft]; got.Delta != tally(1) || got.Total != tally(1) {
		t.Errorf("a new attempt's channel %+v", got)
	}
	if got, want := fourth.Tables["orders"], (Counts{In: 100, Out: 98, Dead: 2}); got != want {
		t.Errorf("tables of the life %+v, want %+v", got, want)
	}
}

// A writer names pieces until it knows that they are covered. What it staged before it passed the barrier of a durable
// epoch of this attempt is covered by it; what came of a skipped epoch is not.
func TestBuildNamesAPieceOnce(t *testing.T) {
	t.Parallel()
	first := build(t, 4, 2, nil)
	for _, tt := range []struct {
		name   string
		fence  fence.Token
		staged []ID
		want   []ID
	}{
		{"news of the durable epoch came late", 3, []ID{4, 5, 7}, []ID{5, 7}},
		{"epochs 5 and 6 were skipped", 3, []ID{5, 6, 7}, []ID{5, 6, 7}},
		{"the durable epoch is another attempt's", 2, []ID{4, 7}, []ID{4, 7}},
	} {
		prev := *first.Manifest
		prev.Fence = tt.fence
		acks := balanced(7, 4)
		x := acks[left]
		x.Staged = pieces(left, tt.staged...)
		acks[left] = x
		m, err := Build(deployment(), cut(7), &prev, first.Ref, acks)
		if err != nil {
			t.Fatal(err)
		}
		var got []ID
		for _, p := range m.Sinks["out"].Staged {
			got = append(got, p.Epoch)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: named %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The same facts give the same digest, whatever the order in which they came; any other fact gives another one.
func TestManifestIsCanonical(t *testing.T) {
	t.Parallel()
	a, b := build(t, 4, 2, nil), build(t, 4, 2, nil)
	if a.Ref != b.Ref {
		t.Errorf("the same facts give %s and %s", a.Ref.Digest, b.Ref.Digest)
	}
	stored, err := a.Manifest.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(stored), `\u003e`) {
		t.Error("channels are escaped as for web pages; people read manifests")
	}
	m, err := Decode(stored, a.Ref)
	if err != nil {
		t.Fatal(err)
	}
	back, err := m.Bytes()
	if err != nil || string(back) != string(stored) {
		t.Errorf("encode after decode differs: %v\n%s\n%s", err, stored, back)
	}
	for name, ref := range map[string]Ref{
		"digest": {Epoch: 4, Digest: Digest([]byte("x"))},
		"epoch":  {Epoch: 5, Digest: a.Ref.Digest},
	} {
		if _, err := Decode(stored, ref); err == nil {
			t.Errorf("another %s is accepted", name)
		}
	}
	newer := strings.Replace(string(stored), `"version":1`, `"version":2`, 1)
	if _, err := Decode([]byte(newer), Ref{Epoch: 4, Digest: Digest([]byte(newer))}); err == nil {
		t.Error("a newer version is accepted")
	}
}

func TestChainFindsEveryBreak(t *testing.T) {
	t.Parallel()
	whole := func() []Link {
		a := build(t, 4, 2, nil)
		b := build(t, 5, 3, &a)
		c := build(t, 8, 5, &b)
		return []Link{a, b, c}
	}
	if found := Chain(whole()); len(found) != 0 {
		t.Fatalf("a whole chain: %v", found)
	}
	for name, damage := range map[string]func([]Link){
		"a digest": func(l []Link) { l[2].Manifest.Prev.Digest = "x" },
		"a gap":    func(l []Link) { l[2].Manifest.Prev = l[0].Ref },
		"a life":   func(l []Link) { l[1].Manifest.Life = "other" },
		"a fence":  func(l []Link) { l[0].Manifest.Fence = 9 },
		"a term":   func(l []Link) { l[0].Manifest.Term = 9 },
		"an epoch": func(l []Link) { l[1].Manifest.Epoch = 3 },
		"a ledger": func(l []Link) { s := l[2].Manifest.Sinks["out"]; s.Prev = l[0].Ref; l[2].Manifest.Sinks["out"] = s },
		"a tally": func(l []Link) {
			x := l[1].Manifest.Channels[toLeft]
			x.Total.Rows++
			l[1].Manifest.Channels[toLeft] = x
		},
		"a first ledger": func(l []Link) { s := l[0].Manifest.Sinks["out"]; s.Prev = l[1].Ref; l[0].Manifest.Sinks["out"] = s },
		"a first tally": func(l []Link) {
			x := l[0].Manifest.Channels[toLeft]
			x.Delta.Rows++
			l[0].Manifest.Channels[toLeft] = x
		},
	} {
		links := whole()
		damage(links)
		if found := Chain(links); len(found) == 0 {
			t.Errorf("damage to %s was not found", name)
		}
	}
}

func TestLedgerAgainstManifests(t *testing.T) {
	t.Parallel()
	a := build(t, 4, 2, nil)
	b := build(t, 5, 3, &a)
	c := build(t, 8, 5, &b)
	links := []Link{a, b, c}
	row := func(l Link, prev Ref) LedgerEntry { return LedgerEntry{Ref: l.Ref, Prev: prev, Rows: 5} }
	ra, rb, rc := row(a, Ref{}), row(b, a.Ref), row(c, b.Ref)
	for _, tt := range []struct {
		name    string
		links   []Link
		entries []LedgerEntry
		found   int
	}{
		{"all", links, []LedgerEntry{ra, rb, rc}, 0},
		{"not committed yet", links, []LedgerEntry{ra, rb}, 0},
		{"older manifests are collected", links[1:], []LedgerEntry{ra, rb, rc}, 0},
		{"an older part of the log is gone", links, []LedgerEntry{rb, rc}, 0},
		{"a gap", links, []LedgerEntry{ra, rc}, 2},
		{"twice", links, []LedgerEntry{ra, rb, rb}, 1},
		{"other rows", links, []LedgerEntry{ra, {Ref: b.Ref, Prev: a.Ref, Rows: 6}}, 1},
		{"a dead letter", links, []LedgerEntry{ra, {Ref: b.Ref, Prev: a.Ref, Rows: 4, Dead: 1}}, 0},
		{"a dead letter too many", links, []LedgerEntry{ra, {Ref: b.Ref, Prev: a.Ref, Rows: 5, Dead: 1}}, 1},
		{"the bus knows less", links[:2], []LedgerEntry{ra, rb, rc}, 1},
	} {
		if found := Ledger("out", tt.links, tt.entries); len(found) != tt.found {
			t.Errorf("%s: %v, want %d findings", tt.name, found, tt.found)
		}
	}
}

// Chains built of any acks hold together.
func TestBuiltChainsVerify(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var links []Link
		n, e := uint64(1), ID(1)
		for range rapid.IntRange(1, 6).Draw(t, "epochs") {
			n += rapid.Uint64Range(0, 3).Draw(t, "messages")
			e += ID(rapid.Uint64Range(1, 3).Draw(t, "skipped"))
			acks := balanced(e, n)
			if rapid.Bool().Draw(t, "empty") {
				x := acks[left]
				x.Staged = nil
				acks[left] = x
			}
			var prev *Manifest
			var ref Ref
			if len(links) > 0 {
				prev, ref = links[len(links)-1].Manifest, links[len(links)-1].Ref
			}
			m, err := Build(deployment(), cut(e), prev, ref, acks)
			if err != nil {
				t.Fatal(err)
			}
			b, err := m.Bytes()
			if err != nil {
				t.Fatal(err)
			}
			links = append(links, Link{Ref: Ref{Epoch: e, Digest: Digest(b)}, Manifest: m})
		}
		if found := Chain(links); len(found) != 0 {
			t.Fatalf("%v", found)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"epoch":4,"subtasks":{"db-0":{"state":{}}},"channels":{"db-0>out-1":{"total":{},"delta":{}}}}`))
	f.Add([]byte(`{"version":1,"epoch":0}`))
	f.Add([]byte(`{"version":1,"subtasks":{"db":{}}}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		m, err := Decode(stored, Ref{Epoch: 4, Digest: Digest(stored)})
		if err != nil {
			return
		}
		b, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(b, Ref{Epoch: 4, Digest: Digest(b)})
		if err != nil {
			t.Fatal(err)
		}
		if c, err := again.Bytes(); err != nil || string(c) != string(b) {
			t.Fatalf("encode after decode differs: %v", err)
		}
	})
}
