package task

import (
	"context"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Conn makes a connection to the bus the [Bus] and the [States] of subtasks.
type Conn struct{ *bus.Conn }

// OpenReceiver opens the durable consumer of a subtask.
func (c Conn) OpenReceiver(ctx context.Context, job string, f fence.Token, s plan.SubtaskID) (Receiver, error) {
	r, err := c.Conn.OpenReceiver(ctx, bus.ReceiverConfig{Job: job, Fence: f, Subtask: s})
	if err != nil {
		return nil, err
	}
	return receiver{r}, nil
}

// OpenPublisher opens a publisher for one subtask.
func (c Conn) OpenPublisher(ctx context.Context, inFlight int64) (Publisher, error) {
	p, err := c.NewPublisher(ctx, bus.PublisherConfig{MaxInFlightBytes: inFlight})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Counts asks the data stream of an attempt.
func (c Conn) Counts(ctx context.Context, job string, f fence.Token, filter string) (map[string]uint64, error) {
	return c.SubjectCounts(ctx, job, f, filter)
}

// PutState stores an object.
func (c Conn) PutState(ctx context.Context, subject string, data []byte) (epoch.Object, error) {
	ref, err := c.Conn.PutState(ctx, subject, data)
	return epoch.Object(ref), err
}

// GetState reads an object back.
func (c Conn) GetState(ctx context.Context, o epoch.Object) ([]byte, error) {
	return c.Conn.GetState(ctx, bus.StateRef(o))
}

type receiver struct{ *bus.Receiver }

func (r receiver) Next(ctx context.Context) (Message, error) {
	d, err := r.Receiver.Next(ctx)
	if err != nil {
		return Message{}, err
	}
	return Message{Subject: d.Subject, Header: d.Header, Data: d.Data, Ack: d.Ack}, nil
}
