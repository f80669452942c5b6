package task

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/source"
)

// slowKeeper answers when it is let.
type slowKeeper struct {
	source.Enumerator

	answer chan error
	asked  [][]epoch.ID
	taking []epoch.ID
}

func (k *slowKeeper) Keep(_ context.Context, taking epoch.ID, all []epoch.ID) error {
	k.taking, k.asked = append(k.taking, taking), append(k.asked, all)
	return <-k.answer
}

// The barrier of a savepoint waits until the source keeps what it needs; other barriers do not. A source that cannot keep it makes
// of the epoch none. What the head names is told once, until it names something else.
func TestSavepointWaitsForTheSource(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{"kept": nil, "refused": errors.New("no room")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				source := &slowKeeper{answer: make(chan error)}
				woken := 0
				k := newKeeping(source, slog.New(slog.DiscardHandler), func() { woken++ })
				at := func(h job.Head) (declined string, ok bool) {
					k.look(t.Context(), &h)
					synctest.Wait()
					return k.passes(&h, h.InFlight.Epoch)
				}
				old := job.Savepoint{Name: "old", Durable: job.Durable{Ref: epoch.Ref{Epoch: 3}}}
				periodic := job.Head{InFlight: &job.InFlight{Epoch: 4, Kind: epoch.Periodic}, Savepoints: []job.Savepoint{old}}
				if _, ok := at(periodic); !ok {
					t.Error("a periodic barrier waits")
				}
				source.answer <- nil
				synctest.Wait()
				taking := periodic
				taking.InFlight = &job.InFlight{Epoch: 5, Kind: epoch.Savepoint, Savepoint: "new"}
				if _, ok := at(taking); ok {
					t.Error("the savepoint's barrier passes before the source has answered")
				}
				source.answer <- refused
				synctest.Wait()
				if declined, ok := at(taking); !ok || (declined != "") != (refused != nil) {
					t.Errorf("behind the answer: %q, %t", declined, ok)
				}
				if _, ok := at(taking); !ok || woken != 2 {
					t.Errorf("woken %d times", woken)
				}
				want := [][]epoch.ID{{3}, {3, 5}}
				if !slices.EqualFunc(source.asked, want, slices.Equal) || !slices.Equal(source.taking, []epoch.ID{0, 5}) {
					t.Errorf("asked for %v, taking %v", source.asked, source.taking)
				}
			})
		})
	}
}
