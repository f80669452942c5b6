package verdict

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/pkg/epoch"
)

// The validators are the guarantees of docs/architecture.md, written once and used from bubble to chaos. Each returns an
// error that names the first few places where it does not hold.

// reported is how many places an error names.
const reported = 5

type findings []error

func (f *findings) say(format string, args ...any) {
	if len(*f) < reported {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

func (f findings) err(what string) error {
	if len(f) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", what, errors.Join(f...))
}

// identity is what makes two changes the same, on every replay.
type identity struct {
	Table, Key string
	Op         string
	Txn        uint64
	Ord        uint32
}

func (c Change) identity() identity { return identity{c.Table, c.Key, c.Op.String(), c.Txn, c.Ord} }

// SameChanges holds when got is want as a multiset of (transaction, table, key, op, ordinal): nothing is missing, nothing
// is there twice, nothing is invented.
func SameChanges(got, want []Change) error {
	count := make(map[identity]int, len(want))
	for _, c := range want {
		count[c.identity()]++
	}
	for _, c := range got {
		count[c.identity()]--
	}
	var f findings
	for _, id := range slices.SortedFunc(maps.Keys(count), compareIdentity) {
		switch n := count[id]; {
		case n > 0:
			f.say("%+v is missing %d times", id, n)
		case n < 0:
			f.say("%+v is there %d times too often", id, -n)
		}
	}
	return f.err(fmt.Sprintf("%d changes at the target, %d at the source", len(got), len(want)))
}

func compareIdentity(a, b identity) int {
	return cmp.Or(cmp.Compare(a.Txn, b.Txn), cmp.Compare(a.Ord, b.Ord), cmp.Compare(a.Table, b.Table),
		cmp.Compare(a.Key, b.Key), cmp.Compare(a.Op, b.Op))
}

// KeyOrder holds when the changes of every key became visible in the order in which the source made them. want is in the
// source's order per key.
func KeyOrder(got, want []Change) error {
	type key struct{ table, key string }
	ordered := make(map[key][]identity)
	for _, c := range want {
		k := key{c.Table, c.Key}
		ordered[k] = append(ordered[k], c.identity())
	}
	var f findings
	for _, c := range got {
		k := key{c.Table, c.Key}
		if next := ordered[k]; len(next) == 0 || next[0] != c.identity() {
			f.say("key %s of %s: %s of transaction %d out of order", c.Key, c.Table, c.Op, c.Txn)
			continue
		}
		ordered[k] = ordered[k][1:]
	}
	return f.err("order per key")
}

// FinalRows holds when an upsert of got gives the same tables as one of want, row by row.
func FinalRows(got, want []Change) error {
	g, w := Replay(got), Replay(want)
	var f findings
	for _, table := range slices.Sorted(maps.Keys(w)) {
		for _, k := range slices.Sorted(maps.Keys(w[table])) {
			if row, ok := g[table][k]; !ok || row != w[table][k] {
				f.say("%s %s is %q, want %q", table, k, row, w[table][k])
			}
		}
	}
	for _, table := range slices.Sorted(maps.Keys(g)) {
		for _, k := range slices.Sorted(maps.Keys(g[table])) {
			if _, ok := w[table][k]; !ok {
				f.say("%s %s is there and should not be", table, k)
			}
		}
	}
	return f.err("final rows")
}

// WholeTransactions holds when all rows of a source transaction became visible in one commit. It is for sources whose
// cuts are not torn. Transactions of several sources must have different numbers.
func WholeTransactions(got []Change) error {
	at := make(map[uint64]epoch.ID)
	var f findings
	for _, c := range got {
		if e, ok := at[c.Txn]; ok && e != c.Epoch {
			f.say("transaction %d is visible in parts, in epochs %s and %s", c.Txn, e, c.Epoch)
		}
		at[c.Txn] = c.Epoch
	}
	return f.err("whole transactions")
}

// LedgerContiguous holds when in the log of every sink each commit follows the one before it, and no commit comes from a
// fence older than one before it.
func LedgerContiguous(log []Applied) error {
	last := make(map[LedgerID]Applied)
	var f findings
	for _, a := range log {
		b := last[a.LedgerID]
		if a.Prev != b.Ref {
			f.say("sink %s: epoch %s follows epoch %s, its prev is epoch %s", a.Sink, a.Ref.Epoch, b.Ref.Epoch, a.Prev.Epoch)
		}
		if a.Fence < b.Fence {
			f.say("sink %s: epoch %s was committed by fence %s after fence %s", a.Sink, a.Ref.Epoch, a.Fence, b.Fence)
		}
		last[a.LedgerID] = a
	}
	return f.err("ledger")
}

// ChainUnbroken holds when the manifests, oldest first, link up and every commit in the log belongs to one of them or to
// an older one that is no longer kept.
func ChainUnbroken(links []epoch.Link, log []Applied) error {
	var f findings
	for _, found := range epoch.Chain(links) {
		f.say("%s", found)
	}
	bySink := make(map[string][]epoch.LedgerEntry)
	for _, a := range log {
		bySink[a.Sink] = append(bySink[a.Sink], epoch.LedgerEntry{Ref: a.Ref, Prev: a.Prev, Rows: a.Rows})
	}
	for _, s := range slices.Sorted(maps.Keys(bySink)) {
		for _, found := range epoch.Ledger(s, links, bySink[s]) {
			f.say("%s", found)
		}
	}
	return f.err("chain of manifests")
}

// Observer is a reader that looks at the target while faults happen. The zero value has seen nothing.
type Observer struct {
	seen  int
	epoch epoch.ID
	f     findings
}

// Look judges what is visible now. durable is the newest epoch that the head record named when it was read after the
// target: what is visible must be durable, and nothing that was visible may go.
func (o *Observer) Look(changes []Change, durable epoch.ID) {
	if len(changes) < o.seen {
		o.f.say("%d changes are visible, %d were before", len(changes), o.seen)
	}
	for _, c := range changes[min(o.seen, len(changes)):] {
		if c.Epoch < o.epoch {
			o.f.say("epoch %s became visible after epoch %s", c.Epoch, o.epoch)
		}
		o.epoch = max(o.epoch, c.Epoch)
	}
	if o.epoch > durable {
		o.f.say("epoch %s is visible, durable is %s", o.epoch, durable)
	}
	o.seen = max(o.seen, len(changes))
}

// Err is what was wrong in all looks.
func (o *Observer) Err() error { return o.f.err("reader during the fault") }
