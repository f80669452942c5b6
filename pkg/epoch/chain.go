package epoch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/pkg/plan"
)

// Link is a manifest with the name under which it is stored.
type Link struct {
	Ref      Ref
	Manifest *Manifest
}

// Finding is one place where a history does not hold together.
type Finding struct {
	Epoch ID     `json:"epoch"`
	Where string `json:"where"`
	What  string `json:"what"`
}

// String is "epoch 7, sink lake: ...".
func (f Finding) String() string {
	if f.Where == "" {
		return fmt.Sprintf("epoch %d: %s", f.Epoch, f.What)
	}
	return fmt.Sprintf("epoch %d, %s: %s", f.Epoch, f.Where, f.What)
}

// Chain checks a stretch of manifests, oldest first, without a gap between them: each names the digest of the one
// before it, life stays, fence and term and epoch never go back, each sink's prev is the last manifest that staged for
// it, and the tallies of a fence add up. The first may be the first of a life (its Prev is zero), one that was begun from
// ledgers, or the oldest that is kept. It returns every place that does not hold.
func Chain(links []Link) []Finding {
	var found []Finding
	for i, l := range links {
		if i == 0 {
			found = append(found, alone(l)...)
			continue
		}
		found = append(found, linked(links[i-1], l)...)
	}
	return found
}

// alone checks what a manifest says of itself.
func alone(l Link) []Finding {
	m := l.Manifest
	var found []Finding
	say := reporter(&found, l.Ref.Epoch)
	if m.Epoch != l.Ref.Epoch {
		say("", "the manifest says epoch %d", m.Epoch)
	}
	for _, c := range slices.SortedFunc(maps.Keys(m.Channels), plan.Channel.Compare) {
		if t := m.Channels[c]; m.Prev.IsZero() && t.Total != t.Delta {
			say("channel "+c.String(), "the first manifest of a life counts %+v of %+v", t.Delta, t.Total)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(m.Sinks)) {
		if p := m.Sinks[s].Prev; m.Prev.IsZero() && !p.IsZero() && m.Kind != Restore {
			say("sink "+s, "prev is epoch %d before the first", p.Epoch)
		}
	}
	return found
}

// linked checks a manifest against the one before it.
func linked(before, l Link) []Finding {
	m, p := l.Manifest, before.Manifest
	var found []Finding
	say := reporter(&found, l.Ref.Epoch)
	if m.Epoch != l.Ref.Epoch {
		say("", "the manifest says epoch %d", m.Epoch)
	}
	if m.Prev != before.Ref {
		say("", "prev is epoch %d (%s), the manifest before is epoch %d (%s)",
			m.Prev.Epoch, short(m.Prev.Digest), before.Ref.Epoch, short(before.Ref.Digest))
	}
	switch {
	case m.Life != p.Life:
		say("", "life %s after life %s", m.Life, p.Life)
	case m.Epoch <= p.Epoch:
		say("", "epoch %d after epoch %d", m.Epoch, p.Epoch)
	case m.Fence < p.Fence:
		say("", "fence %d after fence %d", m.Fence, p.Fence)
	case m.Term < p.Term:
		say("", "term %d after term %d", m.Term, p.Term)
	}
	for _, s := range slices.Sorted(maps.Keys(m.Sinks)) {
		if got, want := m.Sinks[s].Prev, p.LedgerOf(s, before.Ref); got != want {
			say("sink "+s, "prev is epoch %d (%s), the ledger is then at epoch %d (%s)",
				got.Epoch, short(got.Digest), want.Epoch, short(want.Digest))
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(m.Channels), plan.Channel.Compare) {
		t := m.Channels[c]
		var base Tally
		if p.Fence == m.Fence {
			base = p.Channels[c].Total
		}
		sum := Tally{Messages: base.Messages + t.Delta.Messages, Rows: base.Rows + t.Delta.Rows, Hash: base.Hash + t.Delta.Hash}
		if sum != t.Total {
			say("channel "+c.String(), "%d messages before and %d since make %d, the total says %d",
				base.Messages, t.Delta.Messages, sum.Messages, t.Total.Messages)
		}
	}
	return found
}

// LedgerEntry is one row of a sink's ledger log.
type LedgerEntry struct {
	Ref  Ref
	Prev Ref
	// Rows were applied, Dead were left out because they have a dead letter.
	Rows, Dead uint64
}

// Ledger checks one sink's ledger log, oldest first, against the manifests: each entry's prev is the entry before it,
// and every manifest that staged for the sink, up to the last entry, is there once, in order, with its rows, applied or counted as dead. Entries older than
// the oldest manifest are checked among themselves only. When the ledger's last entry lies beyond the manifests, the
// bus knows less than the target.
func Ledger(sink string, links []Link, entries []LedgerEntry) []Finding {
	var found []Finding
	where := "ledger of " + sink
	at := make(map[Ref]Link, len(links))
	var want []Link
	for _, l := range links {
		at[l.Ref] = l
		if len(l.Manifest.Sinks[sink].Staged) > 0 {
			want = append(want, l)
		}
	}
	next := 0
	for i, e := range entries {
		say := reporter(&found, e.Ref.Epoch)
		if i > 0 && e.Prev != entries[i-1].Ref {
			say(where, "prev is epoch %d, the row before is epoch %d", e.Prev.Epoch, entries[i-1].Ref.Epoch)
		}
		if len(links) == 0 || e.Ref.Epoch < links[0].Ref.Epoch {
			continue
		}
		l, ok := at[e.Ref]
		if !ok {
			say(where, "no manifest with digest %s", short(e.Ref.Digest))
			continue
		}
		for next < len(want) && want[next].Ref.Epoch < e.Ref.Epoch {
			if i > 0 {
				say(where, "epoch %d was passed over", want[next].Ref.Epoch)
			}
			next++
		}
		if next < len(want) && want[next].Ref == e.Ref {
			next++
		}
		if rows := stagedRows(l.Manifest, sink); rows != e.Rows+e.Dead {
			say(where, "%d rows were staged, the ledger says %d and %d dead letters", rows, e.Rows, e.Dead)
		}
	}
	return found
}

func stagedRows(m *Manifest, sink string) uint64 {
	var n uint64
	for _, s := range m.Sinks[sink].Staged {
		n += s.Rows
	}
	return n
}

func reporter(found *[]Finding, e ID) func(where, format string, args ...any) {
	return func(where, format string, args ...any) {
		*found = append(*found, Finding{Epoch: e, Where: where, What: fmt.Sprintf(format, args...)})
	}
}

// short is enough of a digest for people.
func short(digest string) string {
	if digest == "" {
		return "none"
	}
	return strings.ToLower(digest[:min(12, len(digest))])
}
