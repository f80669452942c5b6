package job

import (
	"testing"

	"weir.dev/weir/pkg/epoch"
)

// Whoever waits is told of the epoch that was begun for him, or of a later one where its beginning was missed; of none twice.
func TestAskedIsTheEpochBegun(t *testing.T) {
	t.Parallel()
	var a Asked
	for i, c := range []struct {
		seq    uint64
		flying uint64 // 0 for none
		next   uint64
		news   bool
		want   uint64
	}{
		{0, 0, 1, false, 0},
		{0, 1, 2, false, 0},
		{1, 2, 3, true, 2},
		{1, 3, 4, false, 2}, // a later epoch of nobody's
		{3, 0, 6, true, 5},  // begun and durable between two heads
		{4, 6, 9, true, 6},  // ids in between went to a restore
		{2, 4, 5, true, 4},  // of a bus that has come back older
	} {
		h := &Head{Handled: Handled{EpochSeq: c.seq}, NextEpoch: epoch.ID(c.next)}
		if c.flying > 0 {
			h.InFlight = &InFlight{Epoch: epoch.ID(c.flying)}
		}
		if news := a.See(h); news != c.news || a.Epoch != epoch.ID(c.want) {
			t.Errorf("head %d: news %t, epoch %s; want %t, %d", i, news, a.Epoch, c.news, c.want)
		}
	}
	if n := new(Head).Newest(); n != 0 {
		t.Errorf("the newest epoch of no job is %s", n)
	}
}
