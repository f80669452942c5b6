package bus

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"weir.dev/weir/pkg/fault"
)

// deniedAge bounds how long a refusal explains a time-out: longer than any request waits, and not so long that a right
// granted since still looks denied.
const deniedAge = partTimeout + opTimeout

// denials remembers which subjects the server refused, because the refusal arrives apart from the request.
type denials struct {
	mu    sync.Mutex
	seen  map[string]time.Time
	hooks map[*Publisher]struct{}
}

func (d *denials) add(subject string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = make(map[string]time.Time)
	}
	d.seen[subject] = time.Now()
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
		if at, ok := d.seen[s]; ok && time.Since(at) < deniedAge {
			return fault.Wrap(fmt.Errorf("%w: %w", ErrDenied, err), fault.BusRights, s, "the server refused it", "subject", s)
		}
	}
	return err
}
