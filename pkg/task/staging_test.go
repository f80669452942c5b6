package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/sink"
)

// T4 ⚑: whichever epochs are skipped, every piece is in exactly one durable epoch, in the order it was staged.
func TestEveryPieceIsCoveredOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := staging{}
		var passed, durable epoch.ID
		var want, got []string
		made := 0
		epochs := rapid.IntRange(1, 20).Draw(t, "epochs")
		for n := epoch.ID(1); n <= epoch.ID(epochs); n++ {
			var fresh []sink.Piece
			for range rapid.IntRange(0, 2).Draw(t, "pieces") {
				made++
				name := fmt.Sprint(made)
				want = append(want, name)
				fresh = append(fresh, sink.Piece{Data: json.RawMessage(name)})
			}
			if n != epoch.ID(epochs) && rapid.IntRange(0, 4).Draw(t, "lost barrier") == 0 {
				// The barrier never came: its pieces are staged at the next one.
				want = want[:len(want)-len(fresh)]
				made -= len(fresh)
				continue
			}
			named := g.cut(n, passed, durable, fresh)
			passed = n
			if n == epoch.ID(epochs) || rapid.Bool().Draw(t, "durable") {
				for _, s := range named {
					if s.Epoch > n || s.Epoch <= durable {
						t.Fatalf("piece named under epoch %d, between durable %d and %d", s.Epoch, durable, n)
					}
					got = append(got, string(s.Data))
				}
				durable = n
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("durable epochs cover %v, staged were %v", got, want)
		}
	})
}

func link(n epoch.ID, prev epoch.Ref, staged int) (epoch.Ref, *epoch.Manifest) {
	m := &epoch.Manifest{Epoch: n, Sinks: map[string]epoch.SinkState{"s": {Prev: prev, Staged: make([]epoch.Staged, staged)}}}
	return epoch.Ref{Epoch: n, Digest: fmt.Sprintf("d%d", n)}, m
}

// The chain of one sink goes through the epochs that staged something for it, whatever lies between.
func TestChainFromDurableToLedger(t *testing.T) {
	t.Parallel()
	all := map[epoch.Ref]*epoch.Manifest{}
	var refs []epoch.Ref
	var prev epoch.Ref
	for n := epoch.ID(1); n <= 6; n++ {
		ref, m := link(n, prev, int(n%2)) // epochs 2, 4, 6 staged nothing
		all[ref] = m
		refs = append(refs, ref)
		if n%2 == 1 {
			prev = ref
		}
	}
	follow := func(c chain, durable epoch.Ref) ([]epoch.ID, error) {
		ref, more := c.next(durable)
		for more {
			var err error
			if ref, more, err = c.add(ref, all[ref]); err != nil {
				return nil, err
			}
		}
		var ids []epoch.ID
		for _, c := range c.todo {
			ids = append(ids, c.Ref.Epoch)
		}
		return ids, nil
	}
	walk := func(ledger, durable epoch.Ref) ([]epoch.ID, error) {
		return follow(chain{sink: "s", ledger: ledger}, durable)
	}
	// A sink without a ledger goes on above what is committed, and asks for nothing below it: that may be gone.
	for floor, want := range map[epoch.ID][]epoch.ID{0: {1, 3, 5}, 1: {3, 5}, 2: {3, 5}, 3: {5}, 5: nil, 6: nil} {
		got, err := follow(chain{sink: "s", blank: true, floor: floor}, refs[5])
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("without a ledger above %d: %v, %v; want %v", floor, got, err, want)
		}
	}
	for _, tc := range []struct {
		ledger, durable epoch.Ref
		want            []epoch.ID
	}{
		{epoch.Ref{}, refs[5], []epoch.ID{1, 3, 5}},
		{refs[0], refs[4], []epoch.ID{3, 5}},
		{refs[2], refs[3], nil},
		{refs[4], refs[4], nil},
		{epoch.Ref{}, epoch.Ref{}, nil},
	} {
		got, err := walk(tc.ledger, tc.durable)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("from %d to %d: %v, %v; want %v", tc.ledger.Epoch, tc.durable.Epoch, got, err, tc.want)
		}
	}
	// ⚑ a row that is not on the chain is never "nothing to do".
	for _, ledger := range []epoch.Ref{{Epoch: 3, Digest: "other"}, {Epoch: 2, Digest: "d2"}, {Epoch: 9, Digest: "d9"}} {
		if got, err := walk(ledger, refs[5]); fault.CodeOf(err) != fault.JobLedgerDiverged {
			t.Errorf("ledger at epoch %d: %v, %v; want LEDGER_DIVERGED", ledger.Epoch, got, err)
		}
	}
}
