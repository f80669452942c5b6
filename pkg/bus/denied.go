package bus

import (
	"errors"
	"fmt"
	"sync"

	"weir.dev/weir/pkg/fault"
)

// denials remembers which subjects the server refused, because the refusal arrives apart from the request.
type denials struct {
	mu    sync.Mutex
	seen  map[string]struct{}
	hooks map[*Publisher]struct{}
}

func (d *denials) add(subject string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = make(map[string]struct{})
	}
	d.seen[subject] = struct{}{}
	for p := range d.hooks {
		p.onDenied(subject)
	}
}

func (d *denials) watch(p *Publisher) (cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hooks == nil {
		d.hooks = make(map[*Publisher]struct{})
	}
	d.hooks[p] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.hooks, p)
	}
}

// explain replaces "unknown" by "denied", with the remedy, when the server has refused one of the subjects of the request.
func (d *denials) explain(err error, subjects ...string) error {
	if !errors.Is(err, ErrUnknown) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range subjects {
		if _, ok := d.seen[s]; ok {
			return fault.Wrap(fmt.Errorf("%w: %w", ErrDenied, err), fault.BusRights, s, "the server refused it", "subject", s)
		}
	}
	return err
}
