package task

import (
	"context"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
)

// Message is one message from a data channel.
type Message struct {
	Subject string
	Header  map[string][]string
	Data    []byte
	// Ack lets the bus forget the message; it does not wait and may be called from anywhere.
	Ack func()
}

// Receiver is the way in: all channels of one subtask.
type Receiver interface {
	// Next returns the next message. An error of kind bus.ErrStalled may be followed by further messages; every other
	// one is final.
	Next(ctx context.Context) (Message, error)
	Close()
}

// Publisher is the way out. Messages are stored in the order of Publish or, after the first that is not, the publisher
// has ended.
type Publisher interface {
	// Publish sends a message and returns its number; header and data are read before it returns.
	Publish(ctx context.Context, subject string, h bus.Header, data []byte) (uint64, error)
	// AckedThrough is the highest number for which it and all before it are stored.
	AckedThrough() uint64
	// WaitAcked blocks until message n and all before it are stored.
	WaitAcked(ctx context.Context, n uint64) error
	// Advanced is signalled after AckedThrough has moved or the publisher has ended.
	Advanced() <-chan struct{}
	// Err is the error that ended the publisher.
	Err() error
	Close()
}

// Bus is the data plane as a subtask sees it. Tests put faults between this and the real one.
type Bus interface {
	OpenReceiver(ctx context.Context, job string, f fence.Token, s plan.SubtaskID) (Receiver, error)
	// OpenPublisher opens a way out that has at most inFlight payload bytes unacknowledged.
	OpenPublisher(ctx context.Context, inFlight int64) (Publisher, error)
	// Counts tells how many messages the subjects of an attempt's stream hold; subjects without any are left out.
	Counts(ctx context.Context, job string, f fence.Token, filter string) (map[string]uint64, error)
	// MaxPayload bounds headers and data of one message together.
	MaxPayload() int64
}

// States keeps operator state, staged pieces and claim checks.
type States interface {
	// PutState stores an object under a name made by bus.StateSubject.
	PutState(ctx context.Context, subject string, data []byte) (epoch.Object, error)
	// GetState reads an object back and checks size and digest.
	GetState(ctx context.Context, o epoch.Object) ([]byte, error)
}

// Letters keeps the dead letters of jobs.
type Letters interface {
	// ClaimDLQ makes an attempt the only one that may write a sink's letters; fence.ErrFenced when a newer one has.
	ClaimDLQ(ctx context.Context, job, sink string, f fence.Token) (claim uint64, err error)
	// EpochLetters lists the subjects of an epoch's letters.
	EpochLetters(ctx context.Context, job, sink string, e epoch.ID) ([]string, error)
	// PutDeadLetter stores a letter under its subject; bus.ErrConflict when the claim is another's by now.
	PutDeadLetter(ctx context.Context, subject string, claim uint64, h bus.Header, data []byte) error
}

// Records reads what the leader has written.
type Records interface {
	// Head reads the job's head record afresh; nil when there is none.
	Head(ctx context.Context, job string) (*job.Head, error)
	// Manifest reads a manifest of the job and checks its digest.
	Manifest(ctx context.Context, job string, ref epoch.Ref) (*epoch.Manifest, error)
}
