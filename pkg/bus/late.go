package bus

import (
	"context"
	"errors"
	"time"
)

// lateness is how long a server of a cluster may be behind the others, such as one that was frozen, and still answer reads.
const lateness = 5 * time.Second

// Stored repeats a read of what is known to have been stored, because something that was read names it, for as long as it
// is not found and a server of a cluster may only be late. One server alone is never late.
func (c *Conn) Stored(ctx context.Context, read func() error) error {
	err := read()
	s, alone := c.ctl.session()
	if alone != nil || s.nc.ConnectedClusterName() == "" {
		return err
	}
	last := time.Now().Add(lateness)
	for wait := 10 * time.Millisecond; errors.Is(err, ErrNotFound) && time.Now().Before(last); wait = min(2*wait, lateness/10) {
		if !pause(ctx, wait) {
			return err
		}
		err = read()
	}
	return err
}
