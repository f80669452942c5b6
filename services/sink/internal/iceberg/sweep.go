package iceberg

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	iceio "github.com/apache/iceberg-go/io"

	"weir.dev/weir/pkg/fence"
)

// metadataAge is how old a metadata file has to be before nobody can be about to point at it.
const metadataAge = 24 * time.Hour

// gone reports whether a file is not there.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "NotFound")
}

// sweep removes files of a table that nothing points at and nothing ever will: data files of older attempts, once an epoch of this
// attempt is committed and so all durable ones before it; metadata that no commit has used for a day.
func (c *committer) sweep(ctx context.Context, s *state) error {
	list, ok := c.fs.(iceio.ListableIO)
	if !ok {
		return nil
	}
	used, err := c.referenced(s)
	if err != nil {
		return err
	}
	var orphans []string
	walk := func(dir string, orphan func(name string, d fs.DirEntry) bool) error {
		err := list.WalkDir(dir, func(uri string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if !used[pathKey(uri)] && orphan(path.Base(uri), d) {
				orphans = append(orphans, uri)
			}
			return ctx.Err()
		})
		if err != nil && gone(err) {
			return nil
		}
		return err
	}
	root := s.meta.Location()
	if err := walk(root+"/data", func(name string, _ fs.DirEntry) bool { return c.dead(name) }); err != nil {
		return err
	}
	limit := time.Now().Add(-metadataAge)
	err = walk(root+"/metadata", func(name string, d fs.DirEntry) bool {
		switch {
		case strings.HasSuffix(name, ".metadata.json"):
			if c.served() {
				return false // the server's
			}
		case !strings.HasSuffix(name, ".avro"):
			return false // none that the sink writes
		}
		info, err := d.Info()
		return err == nil && info.ModTime().Before(limit)
	})
	if err != nil {
		return err
	}
	for _, uri := range orphans {
		if err := c.fs.Remove(uri); err != nil && !gone(err) {
			return err
		}
	}
	return nil
}

// dead reports whether a file has the name of an older attempt of this life, or of another life.
func (c *committer) dead(name string) bool {
	name, ok := strings.CutSuffix(name, ".parquet")
	parts := strings.Split(name, "-")
	if !ok || len(parts) < 4 {
		return false
	}
	if parts[0] != c.cfg.Life {
		return false // nobody's, as far as this job knows
	}
	f, err := fence.ParseToken(parts[1])
	return err == nil && f < c.cfg.Fence
}

// pathKey makes two ways to write a location one.
func pathKey(uri string) string {
	_, rest, ok := strings.Cut(uri, "://")
	if !ok {
		rest = uri
	}
	return strings.TrimLeft(rest, "/")
}

// referenced are all files of the kinds that the sink writes which the table's metadata names.
func (c *committer) referenced(s *state) (map[string]bool, error) {
	used := map[string]bool{pathKey(s.at): true}
	for e := range s.meta.PreviousFiles() {
		used[pathKey(e.MetadataFile)] = true
	}
	for _, snap := range s.meta.Snapshots() {
		used[pathKey(snap.ManifestList)] = true
		all, err := snap.Manifests(c.fs)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if used[pathKey(m.FilePath())] {
				continue
			}
			used[pathKey(m.FilePath())] = true
			for e, err := range m.Entries(c.fs, false) {
				if err != nil {
					return nil, err
				}
				used[pathKey(e.DataFile().FilePath())] = true
			}
		}
	}
	return used, nil
}
