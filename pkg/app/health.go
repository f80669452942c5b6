package app

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Check reports whether something works; the error says why not, without secrets. It must return at once: it reads what
// the work itself has noted (the time of the last renewal, the last error) and asks nobody.
type Check func() error

// Health collects the checks of a process. It is safe for concurrent use.
type Health struct {
	mu     sync.Mutex
	next   int
	checks map[int]entry
}

type entry struct {
	name  string
	alive bool
	check Check
}

// NewHealth returns a Health without checks, which is alive and ready.
func NewHealth() *Health { return &Health{checks: make(map[int]entry)} }

// Ready adds a condition of readiness: the work does what it should. Replication that has stopped makes a process not
// ready although it runs. The returned function removes it.
func (h *Health) Ready(name string, c Check) (remove func()) {
	return h.add(entry{name: name, check: c})
}

// Alive adds a condition of liveness: without it only a restart of the process helps. It is one of readiness too.
func (h *Health) Alive(name string, c Check) (remove func()) {
	return h.add(entry{name: name, alive: true, check: c})
}

func (h *Health) add(e entry) func() {
	if h == nil {
		return func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := h.next
	h.next++
	h.checks[id] = e
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.checks, id)
	}
}

// gate returns a condition of readiness that fails with why until open is called.
func (h *Health) gate(name string, why error) (open func()) {
	return h.Ready(name, func() error { return why })
}

// Err returns the failed checks of readiness, or nil.
func (h *Health) Err() error {
	_, err := h.report(false)
	return err
}

// report runs the checks, in the order in which they were added, and describes each in a line.
func (h *Health) report(aliveOnly bool) (lines []string, failed error) {
	h.mu.Lock()
	ids := slices.Sorted(maps.Keys(h.checks))
	entries := make([]entry, 0, len(ids))
	for _, id := range ids {
		entries = append(entries, h.checks[id])
	}
	h.mu.Unlock() // a check may take its owner's lock
	var errs []error
	for _, e := range entries {
		if aliveOnly && !e.alive {
			continue
		}
		if err := e.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.name, err))
			lines = append(lines, "[-] "+e.name+": "+strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		lines = append(lines, "[+] "+e.name)
	}
	return lines, errors.Join(errs...)
}

// serve answers a probe: 200 or 503, with a line for each check.
func (h *Health) serve(aliveOnly bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		lines, err := h.report(aliveOnly)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		verdict := "ok"
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			verdict = "not ok"
		}
		_, _ = fmt.Fprintln(w, strings.Join(append([]string{verdict}, lines...), "\n"))
	})
}
