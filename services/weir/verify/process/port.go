package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePort returns a loopback TCP port that nobody listens on. It lies below
// the range that the kernel hands to outgoing connections, so it stays free
// while its server is down between Kill and Restart.
func FreePort(ctx context.Context) (int, error) {
	const low, high = 20000, 32000
	var listen net.ListenConfig
	var last error
	for range 200 {
		port := low + rand.IntN(high-low)
		l, err := listen.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, fmt.Errorf("find a free loopback port: %w", last)
}
