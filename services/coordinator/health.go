package coordinator

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// errLeaderless is why a coordinator is not ready.
var errLeaderless = errors.New("this instance does not lead and has seen no leader yet")

// view is what this instance knows of leadership, for its readiness. It is safe for concurrent use.
type view struct {
	mu      sync.Mutex
	leading bool
	seen    time.Time
}

// lead says whether this instance leads.
func (v *view) lead(yes bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.leading = yes
}

// led says that another instance held the leader's lease at this time.
func (v *view) led(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = at
}

// check fails when this instance does not lead and no leader was seen for the given time: then jobs go on, but nothing
// is decided about them.
func (v *view) check(now time.Time, patience time.Duration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch age := now.Sub(v.seen); {
	case v.leading:
		return nil
	case v.seen.IsZero():
		return errLeaderless
	case age > patience:
		return fmt.Errorf("no leader was seen for %s", age.Round(time.Second))
	}
	return nil
}
