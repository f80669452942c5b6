package pgrepl

import (
	"crypto/tls"
	"net"
	"syscall"
)

// lowWater sets how many bytes must have arrived before the kernel wakes whoever polls a connection. The server sends
// every message of the log by a write of its own, and each would wake the runtime's poller, whether anybody reads or not.
// Where the option does not exist everything works the same and costs more.
type lowWater struct{ raw syscall.RawConn }

func lowWaterOf(conn net.Conn) lowWater {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return lowWater{}
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return lowWater{}
	}
	return lowWater{raw}
}

func (l lowWater) set(bytes int) {
	if l.raw == nil {
		return
	}
	_ = l.raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
	})
}
