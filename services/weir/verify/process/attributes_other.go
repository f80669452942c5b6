//go:build unix && !linux

package process

import "syscall"

// Attributes puts a child into a process group of its own. There is no
// parent death signal here: P3 holds for orderly ends only.
func Attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as}
}
