package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// portHeld is how long a port is not given again: its server may not listen yet.
const portHeld = time.Minute

var ports = struct {
	sync.Mutex

	given map[int]time.Time
}{given: make(map[int]time.Time)}

// FreePort returns a loopback TCP port that nobody listens on and that was not given to anybody in this process a moment ago. It lies
// below the range that the kernel hands to outgoing connections, so it stays free while its server is down between Kill and Restart.
func FreePort(ctx context.Context) (int, error) {
	const low, high = 20000, 32000
	var listen net.ListenConfig
	last := errors.New("all that were tried were just given away")
	for range 200 {
		port := low + rand.IntN(high-low)
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		l.Close()
		if take(port, time.Now()) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free loopback port: %w", last)
}

// take reports whether a port may be given at a time, and notes it then.
func take(port int, now time.Time) bool {
	ports.Lock()
	defer ports.Unlock()
	if at, ok := ports.given[port]; ok && now.Sub(at) < portHeld {
		return false
	}
	ports.given[port] = now
	return true
}
