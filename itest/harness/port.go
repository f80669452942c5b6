package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// FreePort returns a loopback TCP port that nobody listens on. It lies below
// the range that the kernel hands to outgoing connections, so it stays free
// while its server is down between Kill and Restart.
func FreePort() (int, error) {
	const low, high = 20000, 32000
	var last error
	for range 200 {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, fmt.Errorf("find a free loopback port: %w", last)
}
