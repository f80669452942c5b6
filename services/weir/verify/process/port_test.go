package process

import (
	"testing"
	"time"
)

// Two servers that are about to start never get one port.
func TestFreePortIsGivenOnce(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for range 2000 { // of 12,000: by chance some would come twice
		port, err := FreePort(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d was given twice", port)
		}
		seen[port] = true
	}
}

func TestPortsAreGivenAgainLater(t *testing.T) {
	t.Parallel()
	const port = 1 // nobody else asks for it
	now := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {portHeld - 1, false}, {portHeld, true}, {portHeld + 1, false}} {
		if got := take(port, now.Add(c.after)); got != c.want {
			t.Errorf("after %s: %t, want %t", c.after, got, c.want)
		}
	}
}
