// Package durable makes names in a file system survive the loss of power: a file that is synced is not there afterwards when its
// directory was not.
//
// Role: what sinks that write files share. Invariants: what is returned without an error is on the disk. Failure: the file
// system's own errors, as they are; what was made before stays. Source: fsync(2), "does not necessarily ensure that the entry in
// the directory containing the file has also reached disk".
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// SyncDir makes the names in a directory survive.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// MakeDir makes a directory that survives, and those above it. One that is there already is left alone.
func MakeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if up := filepath.Dir(dir); up != dir {
		if err := MakeDir(up); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(filepath.Dir(dir))
}
