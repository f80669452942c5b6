package verify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/services/weir/verify/process"
)

// sight is a head record and when it was seen.
type sight struct {
	at   time.Time
	head job.Head
}

// journal follows a job's head record: every version that the bus delivers, in order. It is safe for concurrent use.
type journal struct {
	mu      sync.Mutex
	seen    []sight
	durable uint64        // the newest epoch that ever was
	changed chan struct{} // closed with the next sight
}

// follow keeps the journal until ctx ends, over losses of the bus.
func (j *journal) follow(ctx context.Context, reg *registry.Registry, name string) {
	for ctx.Err() == nil {
		w := reg.WatchHead(ctx, name)
		for u := range w.Updates() {
			if u.Kind != bus.Put {
				continue
			}
			if v, err := registry.DecodeHead(u.Entry); err == nil {
				j.add(sight{time.Now(), *v.Head})
			}
		}
		w.Close()
		_ = process.Pause(ctx, 50*time.Millisecond)
	}
}

func (j *journal) add(s sight) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seen = append(j.seen, s)
	if d := s.head.Durable; d != nil {
		j.durable = max(j.durable, uint64(d.Epoch))
	}
	if j.changed != nil {
		close(j.changed)
		j.changed = nil
	}
}

// newestDurable is the newest epoch that was ever durable, also when the bus has been put back since.
func (j *journal) newestDurable() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.durable
}

// now is the newest sight; the zero one before the first.
func (j *journal) now() sight {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.seen) == 0 {
		return sight{}
	}
	return j.seen[len(j.seen)-1]
}

// await goes over the sights from index from on, those to come included, until one is right, and returns it and the index behind it.
// The error names what was waited for and the newest phase.
func (j *journal) await(ctx context.Context, what string, from int, right func(job.Head) bool) (sight, int, error) {
	for {
		j.mu.Lock()
		for from < len(j.seen) {
			s := j.seen[from]
			from++
			if right(s.head) {
				j.mu.Unlock()
				return s, from, nil
			}
		}
		if j.changed == nil {
			j.changed = make(chan struct{})
		}
		changed := j.changed
		j.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			h := j.now().head
			return sight{}, from, fmt.Errorf("wait for %s: the job is %s in attempt %s (%s %s): %w", what, h.Phase, h.Fence, h.Reason.Code, h.Reason.Text, context.Cause(ctx))
		}
	}
}

// length is the index behind the newest sight.
func (j *journal) length() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.seen)
}

// since returns the sights from an index on.
func (j *journal) since(from int) []sight {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]sight(nil), j.seen[min(from, len(j.seen)):]...)
}
