package job

import "time"

// NodeLease is what a node says of itself in its lease.
type NodeLease struct {
	Node string `json:"node"`
	// Incarnation is a random id of the process: one that came back is a lost node and a new one.
	Incarnation string `json:"incarnation"`
	// Capabilities are what it can run, e.g. "source:postgres".
	Capabilities []string `json:"capabilities"`
	// Slots is how many subtasks it will run.
	Slots   int       `json:"slots"`
	Version string    `json:"version"`
	HTTP    string    `json:"http,omitempty"`
	Started time.Time `json:"started"`
	// Leaving asks the leader to move the node's subtasks elsewhere before it goes.
	Leaving bool `json:"leaving,omitempty"`
}
