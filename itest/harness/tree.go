package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// children returns the ids of the processes whose parent is pid. PostgreSQL's
// server processes leave their postmaster's process group, so its tree is
// found by parentage.
func children(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []int
	for _, file := range stats {
		state, parent, ok := readStat(file)
		if ok && parent == pid && state != 'Z' {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			found = append(found, child)
		}
	}
	return found
}

// alive reports whether a process exists and is more than a zombie.
func alive(pid int) bool {
	state, _, ok := readStat(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return ok && state != 'Z'
}

// readStat parses "pid (name) state ppid ...", see proc(5). The name may hold
// spaces and parentheses, so fields count from the last one.
func readStat(file string) (state byte, parent int, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent, err == nil
}

// signalAll sends a signal to each process. One that is gone has no need of it.
func signalAll(pids []int, sig syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}
