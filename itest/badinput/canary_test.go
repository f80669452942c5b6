package badinput

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weir.dev/weir/pkg/bus"
)

// tape is everything that was published on the bus.
type tape struct {
	mu   sync.Mutex
	text strings.Builder
	tap  *bus.Tap
	n    int
}

// listen records every message from now on: facts, reports, leases, records, events, rows.
func (s *scene) listen(tb testing.TB) *tape {
	tb.Helper()
	tap, err := s.records.Bus.Tap(tb.Context(), ">")
	if err != nil {
		tb.Fatal(err)
	}
	t := &tape{tap: tap}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			m, err := tap.Next(context.Background())
			if err != nil {
				return
			}
			t.mu.Lock()
			t.n++
			t.text.WriteString(m.Subject)
			for name, values := range m.Header {
				t.text.WriteString(name + strings.Join(values, ","))
			}
			t.text.Write(m.Data)
			t.text.WriteByte('\n')
			t.mu.Unlock()
		}
	})
	tb.Cleanup(func() {
		tap.Close()
		done.Wait()
	})
	return t
}

// silent fails the test when a canary is anywhere: in logs, answers of commands, metrics, what went over the bus and
// what its server keeps on disk.
func (s *scene) silent(tb testing.TB, t *tape) {
	tb.Helper()
	places := s.mesh.Outputs(tb.Context(), tb)
	t.mu.Lock()
	places["messages on the bus"] = t.text.String()
	if t.n == 0 || t.tap.Dropped() > 0 {
		tb.Errorf("%d messages were heard, %d were not", t.n, t.tap.Dropped())
	}
	t.mu.Unlock()
	stored := 0
	err := filepath.WalkDir(s.mesh.Store(), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		stored += len(b)
		places["file "+name] = string(b)
		return err
	})
	if err != nil || stored == 0 {
		tb.Errorf("the store has %d bytes, %v", stored, err)
	}
	for place, text := range places {
		for _, secret := range s.canaries {
			if at := strings.Index(text, secret); at >= 0 {
				tb.Errorf("%s: a password is in it, after %q", place, text[max(0, at-80):at])
			}
		}
	}
	// The search finds what is there.
	if !strings.Contains(places["messages on the bus"], "weir") || len(s.canaries) < 2 {
		tb.Error("the canary test looks at nothing")
	}
}
