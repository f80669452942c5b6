package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/durable"
)

const (
	manifestDir = "_manifest"
	claimDir    = "claims"
	tmpSuffix   = ".tmp"
	openPrefix  = ".open-"
	stagePrefix = ".e"
)

// createOnly makes a file with these bytes appear under a name that must be free; fs.ErrExist when it is not.
func createOnly(name string, data []byte, unique string) error {
	tmp := filepath.Join(filepath.Dir(name), ".new-"+unique+tmpSuffix)
	if err := writeSynced(tmp, data); err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp) }() // written anew by the next one of its name
	if err := os.Link(tmp, name); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(name))
}

func writeSynced(name string, data []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// tableDir is the directory of a table. What a file name cannot hold is written as %XX, and so is what would make two
// names one or hide a directory.
func tableDir(path string, id rows.TableID) string {
	var b strings.Builder
	for i, c := range []byte(id) {
		switch {
		case c == '/' || c == '\\' || c == '%' || c == ':' || c < ' ' || c == 0x7f, i == 0 && (c == '.' || c == '_'):
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return filepath.Join(path, b.String())
}

// stagedEpoch reads the epoch out of the name of a staged file.
func stagedEpoch(name string) (uint64, bool) {
	rest, ok := strings.CutPrefix(name, stagePrefix)
	digits, _, dash := strings.Cut(rest, "-")
	if !ok || !dash || !strings.HasSuffix(name, tmpSuffix) {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// translate classifies an error of the file system.
func translate(err error, where, path string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	why := err.Error()
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.SinkDisk, where, why)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EOPNOTSUPP):
		return fault.Wrap(err, fault.SinkPathUnusable, where, why, "path", path)
	}
	return fault.Wrap(err, fault.SinkUnreachable, where, why, "where", where)
}
