package node

import (
	"encoding/json"
	"time"

	"weir.dev/weir/pkg/job"
)

// going is the end of a node that was asked for: the lease says so, the leader moves the subtasks elsewhere, and when none
// is left here, or none was taken in time, the session ends.
type going struct {
	patience time.Duration
	// told is closed when the node was asked to go and others may take its subtasks.
	told chan struct{}
	// lease is what the lease says from then on.
	lease []byte
	// end ends the session; more than once does no harm.
	end func()
}

func newGoing(patience time.Duration, me job.NodeLease, end func()) *going {
	me.Leaving = true
	lease, err := json.Marshal(me)
	if err != nil {
		panic("N1: a lease that was taken cannot be encoded: " + err.Error())
	}
	return &going{patience: patience, told: make(chan struct{}), lease: lease, end: end}
}

// begin is called once, when the node is asked to go.
func (g *going) begin() {
	if g.patience <= 0 {
		g.end()
		return
	}
	time.AfterFunc(g.patience, g.end) // it does no harm to a session that has ended
	close(g.told)
}
