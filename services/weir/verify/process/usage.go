package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the kernel's USER_HZ, which is 100 on all that Linux runs on.
const clockTick = 10 * time.Millisecond

// Usage is what a process has used since it was started.
type Usage struct {
	// CPU is the time in user and kernel mode of all its threads, to 10 ms.
	CPU time.Duration
	// Writes counts its write system calls, to files and sockets alike; zero where the kernel does not say.
	Writes uint64
}

// Usage reads /proc: Linux only.
func (p *Process) Usage() (Usage, error) {
	dir := fmt.Sprintf("/proc/%d/", p.PID())
	text, err := os.ReadFile(dir + "stat")
	if err != nil {
		return Usage{}, err
	}
	// After the name in parentheses come state and the fields from 4 on, see proc(5); utime is 14, stime 15.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("%sstat has %d fields", dir, len(fields))
	}
	var u Usage
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("read %sstat: %w", dir, err)
		}
		u.CPU += time.Duration(ticks) * clockTick
	}
	io, err := os.ReadFile(dir + "io")
	if err != nil {
		return u, nil //nolint:nilerr // a kernel without accounting
	}
	for line := range strings.Lines(string(io)) {
		if n, ok := strings.CutPrefix(line, "syscw: "); ok {
			u.Writes, err = strconv.ParseUint(strings.TrimSpace(n), 10, 64)
		}
	}
	return u, err
}
