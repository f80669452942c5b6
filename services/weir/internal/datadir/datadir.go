// Package datadir owns the directory of a running `weir up`.
//
// Role: one process holds the directory by a file lock; up.json in it tells commands where that process listens.
//
// Invariants: the lock dies with its process, also by SIGKILL; up.json without a held lock is stale and not believed.
//
// Failure: a killed process leaves up.json behind; [Find] then reports that nothing is running.
package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"weir.dev/weir/pkg/fault"
)

// Default is the directory used when none is named.
const Default = "weir-data"

// Up is what a running process says of itself in up.json.
type Up struct {
	PID  int    `json:"pid"`
	NATS string `json:"nats"`
	HTTP string `json:"http"`
}

// Dir is a directory held by this process.
type Dir struct {
	path string
	lock *os.File
}

// Open makes the directory if need be and takes its lock without waiting. A directory held by another process is
// [fault.AppDirLocked].
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.AppDirUnusable, path, err.Error(), "dir", path)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.Wrap(err, fault.AppDirUnusable, path, err.Error(), "dir", path)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		why := "another process holds its lock"
		if up, upErr := read(path); upErr == nil {
			why += ", pid " + strconv.Itoa(up.PID)
		}
		return nil, errors.Join(fault.Wrap(err, fault.AppDirLocked, path, why, "dir", path), lock.Close())
	}
	return &Dir{path: path, lock: lock}, nil
}

// NATS is where the embedded server keeps its streams.
func (d *Dir) NATS() string { return filepath.Join(d.path, "nats") }

// Announce writes up.json: rename makes it appear whole.
func (d *Dir) Announce(up Up) error {
	b, err := json.MarshalIndent(up, "", "  ")
	if err != nil {
		return err
	}
	tmp := filepath.Join(d.path, "up.json.tmp")
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("announce in %s: %w", d.path, err)
	}
	return os.Rename(tmp, filepath.Join(d.path, "up.json"))
}

// Close withdraws the announcement and gives the lock back.
func (d *Dir) Close() error {
	err := os.Remove(filepath.Join(d.path, "up.json"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.lock.Close())
}

// Find reads the announcement of the process that holds the directory. ok is false when nothing runs there.
func Find(path string) (up Up, ok bool) {
	lock, err := os.Open(filepath.Join(path, "lock"))
	if err != nil {
		return Up{}, false
	}
	defer lock.Close() // only read
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return Up{}, false
	}
	up, err = read(path)
	return up, err == nil
}

func read(path string) (Up, error) {
	b, err := os.ReadFile(filepath.Join(path, "up.json"))
	if err != nil {
		return Up{}, err
	}
	var up Up
	err = json.Unmarshal(b, &up)
	return up, err
}
