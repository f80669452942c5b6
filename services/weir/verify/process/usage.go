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
	var u Usage
	var err error
	if u.CPU, err = TimeOf(p.PID(), false); err != nil {
		return Usage{}, err
	}
	dir := fmt.Sprintf("/proc/%d/", p.PID())
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

// TimeOf is the processor time that a process has used, with children also that of its children that ended and were waited
// for. Linux only.
func TimeOf(pid int, withChildren bool) (time.Duration, error) {
	fields := 2 // of proc(5), user and system; as many of its children follow
	if withChildren {
		fields += 2
	}
	file := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	// After the name in parentheses come state and the fields from 4 on; utime is 14.
	all := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(all) < 11+fields {
		return 0, fmt.Errorf("%s has %d fields", file, len(all))
	}
	var total time.Duration
	for _, f := range all[11 : 11+fields] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		total += time.Duration(ticks) * clockTick
	}
	return total, nil
}
