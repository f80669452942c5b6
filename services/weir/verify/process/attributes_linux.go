package process

import "syscall"

// Attributes puts a child into a process group of its own, so that a
// terminal's Ctrl-C reaches the starter alone, and lets the kernel end it when
// the starter dies (P3).
func Attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as, Pdeathsig: syscall.SIGKILL}
}
