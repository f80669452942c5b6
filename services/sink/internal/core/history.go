package core

import (
	"fmt"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/position"
)

// Entry is one commit that a ledger remembers.
type Entry struct {
	Ref   epoch.Ref   `json:"ref"`
	Prev  epoch.Ref   `json:"prev,omitzero"`
	Fence fence.Token `json:"fence"`
	Rows  uint64      `json:"rows"`
	Dead  uint64      `json:"dead,omitempty"`
	At    time.Time   `json:"at"`
}

// Ledger is what a target remembers of one sink: the current row and the newest commits, oldest first.
type Ledger struct {
	Life      string                       `json:"life"`
	Fence     fence.Token                  `json:"fence"`
	Ref       epoch.Ref                    `json:"ref"`
	Positions map[string]position.Position `json:"positions,omitempty"`
	Log       []Entry                      `json:"log"`
}

// Check reports where the log is not one chain that ends at the row. An empty log says nothing about a row without an
// epoch; the oldest entry may name a predecessor that is no longer kept.
func (l Ledger) Check() error {
	for i, e := range l.Log {
		switch {
		case e.Ref.Epoch <= e.Prev.Epoch:
			return fmt.Errorf("epoch %s follows %s", e.Ref.Epoch, e.Prev.Epoch)
		case i > 0 && e.Prev != l.Log[i-1].Ref:
			return fmt.Errorf("epoch %s follows %s %s, the entry before it is %s %s", e.Ref.Epoch,
				e.Prev.Epoch, e.Prev.Digest, l.Log[i-1].Ref.Epoch, l.Log[i-1].Ref.Digest)
		case i > 0 && e.Fence < l.Log[i-1].Fence:
			return fmt.Errorf("epoch %s has fence %s after fence %s", e.Ref.Epoch, e.Fence, l.Log[i-1].Fence)
		}
	}
	last := epoch.Ref{}
	if n := len(l.Log); n > 0 {
		last = l.Log[n-1].Ref
	}
	if last != l.Ref {
		return fmt.Errorf("the row holds %s %s, the last entry is %s %s", l.Ref.Epoch, l.Ref.Digest, last.Epoch, last.Digest)
	}
	return nil
}
