package harness

import "syscall"

// childAttributes puts a child into a process group of its own, so that a
// terminal's Ctrl-C reaches the starter alone, and lets the kernel end it when
// the starter dies (H3).
func childAttributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as, Pdeathsig: syscall.SIGKILL}
}
