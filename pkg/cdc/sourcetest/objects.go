package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/source"
)

// segmentSize makes several objects of a table without a key.
const segmentSize = 1 << 10

// objects are what the halves have put. Nothing is kept that can be named no more, so that a half that needs an object and
// does not name it misses it.
type objects struct {
	mu   sync.Mutex
	held map[string]object
	n    int
}

type object struct {
	fence  fence.Token
	before epoch.ID // the next barrier that the half had to pass
	data   []byte
}

// shelf is what one half sees of the objects. Put and pass belong to its loop.
type shelf struct {
	*objects

	fence fence.Token
	next  epoch.ID
}

var _ source.Store = (*shelf)(nil)

func (s *shelf) pass(e epoch.ID) { s.next = e + 1 }

func (s *shelf) Put(_ context.Context, data []byte) (epoch.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = make(map[string]object)
	}
	s.n++
	name := fmt.Sprintf("object.%d", s.n)
	s.held[name] = object{fence: s.fence, before: s.next, data: slices.Clone(data)}
	return epoch.Object{Subject: name, Size: int64(len(data))}, nil
}

func (o *objects) Get(_ context.Context, ref epoch.Object) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, ok := o.held[ref.Subject]
	if !ok {
		return nil, errors.New(ref.Subject + " is gone: a cut should have named it")
	}
	return slices.Clone(h.data), nil
}

// collect drops what a durable cut does not name and no later one may begin to name.
func (o *objects) collect(c *cut, own fence.Token) {
	named := make(map[string]bool)
	for _, half := range append(slices.Clone(c.readers), c.enumerator) {
		for _, ref := range half.Objects {
			named[ref.Subject] = true
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, h := range o.held {
		if !named[name] && (h.fence < own || h.before <= c.epoch) {
			delete(o.held, name)
		}
	}
}

// left counts the objects that are held.
func (o *objects) left() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.held)
}
