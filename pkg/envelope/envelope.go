package envelope

import (
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// Version is the envelope version this build writes.
const Version = 1

// Kind says what a message is. An unknown kind is an error, never skipped.
type Kind string

// The kinds on data channels.
const (
	Rows      Kind = "rows"
	Barrier   Kind = "barrier"
	Watermark Kind = "watermark"
	// Status is a message between an enumerator and its readers.
	Status Kind = "status"
	End    Kind = "end"
)

// The kinds of facts a subtask tells the coordinator.
const (
	Ready     Kind = "ready"
	Ack       Kind = "ack"
	Committed Kind = "committed"
	Input     Kind = "input"
	Drained   Kind = "drained"
	Failed    Kind = "failed"
	// Released is a process's answer to the hand-over of clean-up.
	Released Kind = "released"
)

// Envelope is one message of the mesh: text headers a person can read with the NATS CLI, and a payload.
type Envelope struct {
	Kind  Kind
	Fence fence.Token
	// Epoch is binding on a barrier (the epoch it ends); on rows it is the last barrier sent plus one, for people and
	// object names.
	Epoch epoch.ID
	// Seq numbers the messages of a channel from 1 in every attempt, without gaps. Zero on facts.
	Seq uint64
	// Table, RowCount and Position are for people; the payload is what counts.
	Table    string
	RowCount int
	Position string
	// Ref is the claim check of a payload too big for one message: the JSON form of an epoch.Object.
	Ref string
	// Trace holds W3C trace context headers, when sampled.
	Trace   map[string]string
	Payload []byte
}
