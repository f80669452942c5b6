package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

// ErrLeaseLost says that the lease is not ours any more: it expired, or another process has it.
var ErrLeaseLost = fault.Mark(fault.Fenced, errors.New("lease lost"))

// Lease is the ownership of one key for as long as it is renewed. It is for one goroutine; the value of a lease must
// tell its owner apart from every other process, its own earlier incarnation included.
type Lease struct {
	bucket   *bus.Bucket
	key      string
	value    []byte
	ttl      time.Duration
	revision uint64
	sent     time.Time
}

// Acquire takes a lease that nobody holds; bus.ErrConflict when somebody does.
func (r *Registry) Acquire(ctx context.Context, key string, value []byte) (*Lease, error) {
	l := &Lease{bucket: r.leases, key: key, value: value, ttl: r.ttl, sent: time.Now()}
	rev, err := r.leases.Create(ctx, key, value)
	if errors.Is(err, bus.ErrUnknown) {
		rev, err = l.readBack(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("acquire lease %s: %w", key, err)
	}
	l.revision = rev
	return l, nil
}

// Until is when the lease may be gone: the sending of the last renewal that is known to have been stored, plus the time
// to live. The owner must not act on it any more.
func (l *Lease) Until() time.Time { return l.sent.Add(l.ttl) }

// Interval is how often to renew: a third of the time to live.
func (l *Lease) Interval() time.Duration { return l.ttl / 3 }

// Renew makes the lease live on with a new value, or with the old one when value is nil. ErrLeaseLost is final. Any
// other error leaves it as it was: try again before Until.
func (l *Lease) Renew(ctx context.Context, value []byte) error {
	if value == nil {
		value = l.value
	}
	sent := time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.Interval())
	defer cancel()
	rev, err := l.bucket.Update(ctx, l.key, value, l.revision)
	if errors.Is(err, bus.ErrConflict) || errors.Is(err, bus.ErrUnknown) {
		before := l.value
		l.value = value
		if rev, err = l.readBack(ctx, err); err != nil {
			l.value = before
		}
	}
	if err != nil {
		return fmt.Errorf("renew lease %s: %w", l.key, err)
	}
	l.revision, l.value, l.sent = rev, value, sent
	return nil
}

// Keep renews the lease until ctx ends, and returns ctx's cause then. ErrLeaseLost says that the lease is lost, or may be since it
// could not be renewed in time.
func (l *Lease) Keep(ctx context.Context) error {
	t := time.NewTimer(l.Interval())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
		}
		err := l.Renew(ctx, nil)
		switch {
		case err == nil:
			t.Reset(l.Interval())
		case errors.Is(err, ErrLeaseLost):
			return err
		case !time.Now().Before(l.Until()):
			return fmt.Errorf("%w: not renewed in time: %w", ErrLeaseLost, err)
		default:
			t.Reset(min(l.Interval()/4, max(time.Until(l.Until()), 0)))
		}
	}
}

// readBack settles a write whose outcome is not known.
func (l *Lease) readBack(ctx context.Context, cause error) (uint64, error) {
	e, err := l.bucket.Get(ctx, l.key)
	switch {
	case errors.Is(err, bus.ErrNotFound) && errors.Is(cause, bus.ErrConflict):
		return 0, ErrLeaseLost
	case err != nil:
		return 0, errors.Join(cause, err)
	case bytes.Equal(e.Value, l.value) && e.Revision > l.revision:
		return e.Revision, nil
	case e.Revision == l.revision:
		return 0, cause // not stored, or not yet
	case errors.Is(cause, bus.ErrConflict) || !bytes.Equal(e.Value, l.value):
		return 0, ErrLeaseLost
	}
	return 0, cause
}

// Release gives the lease back at once, so that a successor need not wait.
func (l *Lease) Release(ctx context.Context) error {
	if err := l.bucket.Delete(ctx, l.key, l.revision); err != nil {
		return fmt.Errorf("release lease %s: %w", l.key, err)
	}
	return nil
}

// WatchLeader follows the leader's lease.
func (r *Registry) WatchLeader(ctx context.Context) *bus.Watch {
	return r.leases.Watch(ctx, bus.LeaderKey)
}

// WatchNodes follows the leases of all nodes; entries are read by [DecodeNode].
func (r *Registry) WatchNodes(ctx context.Context) *bus.Watch {
	return r.leases.Watch(ctx, bus.NodePattern)
}

// Nodes reads the leases of all nodes as one snapshot, in the order of their names.
func (r *Registry) Nodes(ctx context.Context) ([]job.NodeLease, error) {
	es, err := r.leases.GetMany(ctx, bus.NodePattern)
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	nodes := make([]job.NodeLease, 0, len(es))
	for _, e := range es {
		n, err := DecodeNode(e)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// DecodeNode reads an entry of a node's key.
func DecodeNode(e bus.Entry) (job.NodeLease, error) {
	var n job.NodeLease
	err := decode(e, &n)
	return n, err
}

// Holder reads the value of a lease; bus.ErrNotFound when nobody has it.
func (r *Registry) Holder(ctx context.Context, key string) ([]byte, error) {
	e, err := r.leases.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read lease %s: %w", key, err)
	}
	return e.Value, nil
}

// AcquireNode takes the lease of a node; bus.ErrConflict when another process uses the name.
func (r *Registry) AcquireNode(ctx context.Context, n job.NodeLease) (*Lease, error) {
	b, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode lease of node %s: %w", n.Node, err)
	}
	return r.Acquire(ctx, bus.NodeKey(n.Node), b)
}
