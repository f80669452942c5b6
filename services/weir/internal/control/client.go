package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/registry"
)

// Client asks and reads. It does not own the connection.
type Client struct {
	conn *bus.Conn
	reg  *registry.Registry
}

// Open opens the records. While no coordinator has made them it waits, as long as ctx allows; then it is
// [fault.RegNoLeader].
func Open(ctx context.Context, conn *bus.Conn) (*Client, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		reg, err := registry.Open(ctx, conn, 0)
		switch {
		case err == nil:
			return &Client{conn: conn, reg: reg}, nil
		case !errors.Is(err, bus.ErrNotFound) && ctx.Err() == nil:
			return nil, fmt.Errorf("open the registry: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fault.Wrap(ctx.Err(), fault.RegNoLeader, "NATS", "no coordinator has set this server up")
		case <-tick.C:
		}
	}
}

// Head reads a job's head record; a job without one is [fault.CLINoJob].
func (c *Client) Head(ctx context.Context, name string) (*job.Head, error) {
	v, err := c.reg.Head(ctx, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the head of %s: %w", name, err)
	case v.Head == nil || v.Head.Phase == job.Deleted:
		return nil, fault.New(fault.CLINoJob, name, "the registry has no such job")
	}
	return v.Head, nil
}

// Await follows a job's head until done says so. The head may be nil. A context that ends first is
// [fault.CLIWaitTimeout] with the newest phase and reason when it ran out of time, and its cause when it was cancelled.
func (c *Client) Await(ctx context.Context, name string, done func(*job.Head) (bool, error)) (*job.Head, error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	w := c.reg.WatchHead(watching, name)
	defer w.Close()
	// A watch only makes it faster: what counts is read again each second.
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last *job.Head
	for {
		if v, err := c.reg.Head(ctx, name); err == nil {
			last = v.Head
			if ok, err := done(last); ok || err != nil {
				return last, err
			}
		}
		select {
		case <-ctx.Done():
			why := "the job has no record yet"
			if last != nil {
				why = fmt.Sprintf("the job is %s (%s %s)", last.Phase, last.Reason.Code, last.Reason.Text)
			}
			return last, waited(ctx, name, why)
		case <-tick.C:
		case _, open := <-w.Updates():
			if !open {
				w.Close()
				w = c.reg.WatchHead(watching, name)
			}
		}
	}
}

// waited is the error of a wait whose ctx has ended.
func waited(ctx context.Context, name, why string) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return fault.Wrap(ctx.Err(), fault.CLIWaitTimeout, name, why, "job", name)
}

// request makes the id by which the leader quotes an intent.
func request() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "r" + hex.EncodeToString(b[:])
}
