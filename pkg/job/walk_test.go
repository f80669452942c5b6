package job

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
)

// check compares a world with the one it came from: what must hold after every step of every history.
func (w *world) check(before *world) error {
	for i := max(len(before.heads), 1); i < len(w.heads); i++ {
		if err := follows(&w.heads[i-1], &w.heads[i]); err != nil {
			return err
		}
		if err := w.soundSpec(&w.heads[i]); err != nil {
			return err
		}
	}
	if len(w.heads) > 0 {
		h := &w.heads[len(w.heads)-1]
		if h.Durable != nil {
			if err := w.soundDurable(h); err != nil {
				return err
			}
		}
		// I5: the target holds nothing that the chain does not reach.
		if r := w.target.row.Ref; !r.IsZero() {
			if h.Durable == nil || !slices.ContainsFunc(w.chain(h.Durable.Ref, 0), func(l epoch.Link) bool { return l.Ref == r }) {
				return fmt.Errorf("the ledger is at epoch %d, which the durable chain does not reach", r.Epoch)
			}
			if h.Committed > r.Epoch {
				for _, l := range w.chain(h.Durable.Ref, 0) {
					if l.Ref.Epoch > r.Epoch && l.Ref.Epoch <= h.Committed && len(l.Manifest.Sinks["out"].Staged) > 0 {
						return fmt.Errorf("committed is %d, the ledger is at %d", h.Committed, r.Epoch)
					}
				}
			}
		} else if h.Committed > 0 && w.chain(h.Durable.Ref, 0)[0].Manifest.Sinks["out"].Staged != nil && h.Committed >= w.chain(h.Durable.Ref, 0)[0].Ref.Epoch {
			return fmt.Errorf("committed is %d, the ledger is empty", h.Committed)
		}
	}
	// Every row once, in order, without a gap.
	for i, r := range w.target.rows {
		if r != i {
			return fmt.Errorf("the target holds rows %v", w.target.rows)
		}
	}
	return nil
}

// soundSpec checks that an attempt runs the spec of its head, and no other.
func (w *world) soundSpec(h *Head) error {
	if h.Plan == nil {
		return nil
	}
	if got := string(w.plans[h.Plan.Key].Spec); got != strconv.Quote(h.SpecDigest) {
		return fmt.Errorf("the plan %s has the spec %s, the head has %q", h.Plan.Key, got, h.SpecDigest)
	}
	return nil
}

// soundApplied checks what a head says of its last change of the spec.
func soundApplied(a, b *Head) error {
	switch x := b.Applied; {
	case b.SpecDigest != a.SpecDigest && (b.Fence != a.Fence+1 || x == nil || x.Fence != b.Fence || x.SpecDigest != b.SpecDigest):
		return fmt.Errorf("the spec became %s in fence %d after %d, applied is %+v", b.SpecDigest, b.Fence, a.Fence, x)
	case x == nil:
		return nil
	case x.Seq != b.Handled.Applied:
		return fmt.Errorf("applied is %+v, handled %d", x, b.Handled.Applied)
	case x.Epoch != 0 && (b.Durable == nil || b.Durable.Epoch < x.Epoch || b.Durable.Fence < x.Fence):
		return fmt.Errorf("applied holds from epoch %d on, durable is %s", x.Epoch, durableText(b))
	case x.Epoch == 0 && b.Durable != nil && b.Durable.Fence >= x.Fence:
		return fmt.Errorf("epoch %d of fence %d has the spec of fence %d, and nobody says so", b.Durable.Epoch, b.Durable.Fence, x.Fence)
	}
	return nil
}

// follows checks two versions of the head that lie next to each other.
func follows(a, b *Head) error {
	switch {
	case b.Term < a.Term:
		return fmt.Errorf("term %d after %d", b.Term, a.Term)
	case b.Fence < a.Fence || b.Fence > a.Fence+1:
		return fmt.Errorf("fence %d after %d", b.Fence, a.Fence)
	case b.NextEpoch < a.NextEpoch || b.NextEpoch > a.NextEpoch+1:
		return fmt.Errorf("nextEpoch %d after %d", b.NextEpoch, a.NextEpoch)
	case b.Life != a.Life || b.Phase == Deleted:
		return nil // another life, or what is left of a deleted one: only the counters go on
	case b.InFlight != nil && b.InFlight.Epoch >= b.NextEpoch:
		return fmt.Errorf("epoch %d in flight, next is %d", b.InFlight.Epoch, b.NextEpoch)
	case b.InFlight != nil && !b.Phase.Active():
		return fmt.Errorf("epoch %d in flight in %s", b.InFlight.Epoch, b.Phase)
	case b.InFlight != nil && (a.InFlight == nil || a.InFlight.Epoch != b.InFlight.Epoch) && b.InFlight.Epoch != a.NextEpoch:
		return fmt.Errorf("epoch %d triggered, next was %d", b.InFlight.Epoch, a.NextEpoch)
	case b.Committed < a.Committed:
		return fmt.Errorf("committed %d after %d", b.Committed, a.Committed)
	case b.Committed > durableEpoch(b):
		return fmt.Errorf("committed %d, durable %d", b.Committed, durableEpoch(b))
	case b.Plan != nil && b.Plan.Fence != b.Fence:
		return fmt.Errorf("plan of fence %d under fence %d", b.Plan.Fence, b.Fence)
	case durableEpoch(b) < durableEpoch(a):
		return fmt.Errorf("durable %d after %d", durableEpoch(b), durableEpoch(a))
	case durableEpoch(b) > durableEpoch(a) && b.Restored != nil && b.Restored.As == b.Durable.Ref:
		if b.Phase != Starting || b.Fence != a.Fence+1 || b.Durable.Epoch != a.NextEpoch {
			return fmt.Errorf("%s was restored as epoch %d under fence %d, next was %d", b.Phase, b.Durable.Epoch, b.Fence, a.NextEpoch)
		}
	case durableEpoch(b) > durableEpoch(a) && (a.InFlight == nil || a.InFlight.Epoch != b.Durable.Epoch):
		return fmt.Errorf("epoch %d became durable and was not in flight", b.Durable.Epoch)
	case a.Phase == Starting && b.Phase.Active() && (b.Plan == nil || a.Plan == nil):
		return fmt.Errorf("%s without a plan", b.Phase)
	}
	return soundApplied(a, b)
}

// soundDurable checks the manifest that the head names.
func (w *world) soundDurable(h *Head) error {
	m := w.links[h.Durable.Ref]
	if m == nil {
		return fmt.Errorf("durable epoch %d has no manifest", h.Durable.Epoch)
	}
	if found := epoch.Chain(w.chain(h.Durable.Ref, 0)); len(found) > 0 {
		return fmt.Errorf("chain: %v", found)
	}
	for _, id := range []plan.SubtaskID{idEnum, idReader, idWriter} {
		if _, ok := m.Subtasks[id]; !ok {
			return fmt.Errorf("durable epoch %d lacks %s", m.Epoch, id)
		}
	}
	if fmt.Sprint(m.Channels[chData].Total.Rows) == "0" && len(m.Sinks["out"].Staged) > 0 {
		return fmt.Errorf("durable epoch %d stages rows that nobody counted", m.Epoch)
	}
	return nil
}

// key tells worlds apart that can behave differently. Times count relative to now.
func (w *world) key() uint64 {
	var b strings.Builder
	rel := func(t time.Time) time.Duration {
		if t.IsZero() {
			return -1
		}
		return max(t.Sub(w.now), -time.Minute)
	}
	head := func(h *Head) {
		if h == nil {
			b.WriteString("-")
			return
		}
		fmt.Fprintf(&b, "{%s %s %d %d %d %d %d %v %s %d", h.Phase, h.Life, h.Term, h.Fence, h.NextEpoch, h.Committed, h.Skipped, h.Handled, h.Reason.Code, rel(h.RetryAt))
		if h.Plan != nil {
			b.WriteString(h.Plan.Key)
		}
		if h.InFlight != nil {
			fmt.Fprintf(&b, " i%d %s %d", h.InFlight.Epoch, h.InFlight.Kind, rel(h.InFlight.Deadline))
		}
		if h.Durable != nil {
			fmt.Fprintf(&b, " d%d %s", h.Durable.Epoch, h.Durable.Key)
		}
		for _, r := range h.Restarts {
			fmt.Fprintf(&b, " r%s%d", r.Kind, r.Durable)
		}
		fmt.Fprintf(&b, " %+v %v", h.Release, h.Drain != nil)
		if h.Applied != nil {
			fmt.Fprintf(&b, " a%+v", *h.Applied)
		}
		fmt.Fprintf(&b, " s%d %v %d %v", h.SuspendFrom, h.Saving != nil, len(h.Savepoints), h.Restored != nil)
		b.WriteByte('}')
	}
	s := &w.leader
	if n := len(w.heads); n > 0 {
		head(&w.heads[n-1])
	}
	fmt.Fprintf(&b, "|%d %d %v %v %v %v %v %v", s.Term, len(w.heads)-int(s.Revision), s.Known, s.Unsure, s.Deposed, s.Settled, s.Intent.Wish, s.Spec != nil)
	head(s.Head)
	if s.Writing != nil {
		head(s.Writing)
	}
	for _, op := range slices.Sorted(mapKeys(s.Busy)) {
		b.WriteString(string(op))
	}
	for _, op := range slices.Sorted(mapKeys(s.Hold)) {
		fmt.Fprintf(&b, "%s%d", op, rel(s.Hold[op]))
	}
	a := &s.Attempt
	fmt.Fprintf(&b, "|%d %d %v %v %v %v %d %d %v %d", a.Fence, rel(a.Began), a.Streams, a.Plan != nil, a.Stored != nil, a.Drained,
		rel(a.Triggered), len(s.Chain), s.Dropped, s.Collected)
	for _, id := range []plan.SubtaskID{idEnum, idReader, idWriter, idCommit} {
		ack := a.Acks[id]
		r, ok := a.Ready[id]
		fmt.Fprintf(&b, ";%v %s %v %d %s %d %v %d", ok, r.Incarnation, r.Ledger, ack.Epoch, ack.Declined, len(ack.Staged), ack.In[chData], a.Committed[id])
	}
	if a.Cut != nil {
		fmt.Fprintf(&b, "|c%d %d", a.Cut.Ref.Epoch, len(a.Cut.Manifest.Sinks["out"].Staged))
	}
	fmt.Fprintf(&b, "%v", a.Manifest != nil)
	if a.Trouble != nil {
		fmt.Fprintf(&b, "|t%s%s", a.Trouble.Kind, a.Trouble.Reason.Code)
	}
	for _, n := range s.Nodes {
		b.WriteString(n.Incarnation)
	}
	fmt.Fprintf(&b, "|n%d %v %d", min(rel(s.Roster.Since), steadyRoster), s.Roster.Moved == s.Roster.Who, s.Roster.Fence)
	for _, e := range w.under {
		fmt.Fprintf(&b, "|u%T", e)
		if x, ok := e.(WriteHead); ok {
			fmt.Fprintf(&b, "%d", len(w.heads)-int(x.Expect))
			head(&x.Head)
		}
	}
	for _, g := range w.ghosts {
		if int(g.Expect) == len(w.heads) { // others can never land
			head(&g.Head)
		}
	}
	for i := range w.procs {
		p := &w.procs[i]
		h := p.held
		fmt.Fprintf(&b, "|p%d %v %d %d %v %v %v %d %d %d %v", p.incarnation, p.dead, len(w.heads)-p.version, h.Fence, h.Started, h.Emitting, h.Draining, h.Barrier, h.Durable, h.Committed, h.Releasing)
		fmt.Fprintf(&b, " %d %d %d %d %d %v", p.position, p.rows, p.barriers, p.passed, p.restored, p.staged)
	}
	for _, k := range slices.Sorted(mapKeys(w.facts)) {
		switch f := w.facts[k].(type) { //nolint:gochecksumtype // only facts are kept
		case AckSeen:
			fmt.Fprintf(&b, "|%s %d %d %d %s %v", k, f.Fact.Fence, f.Fact.Epoch, len(f.Fact.Staged), f.Fact.Declined, f.Fact.In[chData])
		case ReadySeen:
			fmt.Fprintf(&b, "|%s %d %s", k, f.Fact.Fence, f.Fact.Incarnation)
		case CommitSeen:
			fmt.Fprintf(&b, "|%s %d %d", k, f.Fact.Fence, f.Fact.Epoch)
		case DrainedSeen:
			fmt.Fprintf(&b, "|%s %d", k, f.Fact.Fence)
		default:
			fmt.Fprintf(&b, "|%s", k)
		}
		if w.told[k] {
			b.WriteByte('!')
		}
	}
	t := w.target.row
	fmt.Fprintf(&b, "|%v|%d %d %v|%+v", w.channel, t.Ref.Epoch, t.Fence, w.target.rows, w.left)
	return maphash.String(seed, b.String())
}

var seed = maphash.MakeSeed()

func mapKeys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// beyond bounds the walk: what happens after the third epoch, or in the attempts after the bound, looks like before.
func (w *world) beyond() bool {
	if len(w.heads) == 0 {
		return false
	}
	h := &w.heads[len(w.heads)-1]
	return h.NextEpoch > w.left.epochs+1 || h.Fence > w.left.fences
}

type step struct {
	from uint64
	name string
}

// walk visits every world that any order of events can reach within the budget, and returns what it has seen.
func walk(t *testing.T, b budget) map[string]int {
	t.Helper()
	first := newWorld(b)
	seen := map[uint64]step{first.key(): {}}
	type place struct {
		w   *world
		key uint64
	}
	queue := []place{{first, first.key()}}
	reached := make(map[string]int)
	history := func(k uint64, last string) string {
		names := []string{last}
		for s := seen[k]; s.name != ""; s = seen[s.from] {
			names = append(names, s.name)
		}
		slices.Reverse(names)
		return strings.Join(names, "\n")
	}
	const most = 100_000 // a walk that grows beyond this has lost its bounds
	steps := 0
	for len(queue) > 0 {
		if len(seen) > most {
			t.Fatalf("more than %d worlds; reached %v", most, reached)
		}
		w, at := queue[0].w, queue[0].key
		queue = queue[1:]
		for _, tr := range w.possible() {
			steps++
			next := w.clone()
			err := func() (err error) {
				defer func() {
					if v := recover(); v != nil {
						err = fmt.Errorf("panic: %v", v)
					}
				}()
				tr.do(next)
				return next.check(w)
			}()
			if err != nil {
				t.Fatalf("%v\nhistory:\n%s", err, history(at, tr.name))
			}
			if n := len(next.heads); n > 0 {
				reached[string(next.heads[n-1].Phase)]++
				reached["durable "+durableText(&next.heads[n-1])]++
				reached[next.heads[n-1].Reason.Code]++
				if len(next.heads[n-1].Savepoints) > 0 {
					reached["savepoint"]++
				}
			}
			reached["refused "+fmt.Sprint(next.target.refused > 0)]++
			k := next.key()
			if _, known := seen[k]; known || next.beyond() {
				continue
			}
			seen[k] = step{from: at, name: tr.name}
			queue = append(queue, place{next, k})
		}
	}
	t.Logf("%d worlds, %d steps; reached %v", len(seen), steps, reached)
	return reached
}
