//go:build unix && !linux

package harness

import "syscall"

// childAttributes puts a child into a process group of its own. There is no
// parent death signal here: H3 holds for orderly ends only.
func childAttributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as}
}
