package iceberg

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	iceio "github.com/apache/iceberg-go/io"

	"weir.dev/weir/services/sink/internal/durable"
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
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
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
	return durable.SyncDir(filepath.Dir(f.Name()))
}
