package iceberg

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
)

// localFiles is a directory whose files are safe once they are closed: a catalog that survives the loss of power must not point
// at files that do not.
type localFiles struct{}

var (
	_ iceio.WriteFileIO = localFiles{}
	_ iceio.ListableIO  = localFiles{}
)

const fileScheme = "file://"

func pathOf(uri string) string { return strings.TrimPrefix(uri, fileScheme) }

// Open implements iceio.IO.
func (localFiles) Open(name string) (iceio.File, error) { return os.Open(pathOf(name)) }

// Remove implements iceio.IO. What is not there is removed, as in an object store.
func (localFiles) Remove(name string) error {
	if err := os.Remove(pathOf(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Create implements iceio.WriteFileIO.
func (localFiles) Create(name string) (iceio.FileWriter, error) {
	path := pathOf(name)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return syncedFile{f}, nil
}

// WriteFile implements iceio.WriteFileIO.
func (l localFiles) WriteFile(name string, data []byte) error {
	f, err := l.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// WalkDir implements iceio.ListableIO; the names it gives are URIs as the root is.
func (localFiles) WalkDir(root string, fn fs.WalkDirFunc) error {
	scheme := ""
	if strings.HasPrefix(root, fileScheme) {
		scheme = fileScheme
	}
	return filepath.WalkDir(pathOf(root), func(path string, d fs.DirEntry, err error) error { return fn(scheme+path, d, err) })
}

// syncedFile is safe, with its name, after Close.
type syncedFile struct{ *os.File }

// Close implements io.Closer.
func (f syncedFile) Close() error {
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.File.Close())
	}
	if err := f.File.Close(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.Name()))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir makes a directory, and those above it, that are there after the loss of power.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if up := filepath.Dir(dir); up != dir {
		if err := makeDir(up); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}
