package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/durable"
	"weir.dev/weir/services/sink/internal/stage"
)

// Connector opens writers and committers for a directory.
type Connector struct{}

// Level is TRANSACTIONAL: an epoch is visible when its manifest is, and the manifest is the ledger.
func (Connector) Level(spec.Sink) sink.Level { return sink.Transactional }

// OpenWriter opens one writer and removes what an older attempt of it left half written.
func (Connector) OpenWriter(_ context.Context, cfg sink.Config) (sink.Writer, error) {
	p, err := pathOf(cfg)
	if err != nil {
		return nil, err
	}
	w := &writer{
		place: p, cfg: cfg, open: make(map[string]*dataFile),
		fold: stage.ChangesOf(cfg.Sink.Mode, cfg.Subtask.Index),
	}
	return w, p.translate(w.sweep())
}

// OpenCommitter proves that the directory can hold what the level promises: hard links that are made once.
func (Connector) OpenCommitter(_ context.Context, cfg sink.Config) (sink.Committer, error) {
	p, err := pathOf(cfg)
	if err != nil {
		return nil, err
	}
	c := &committer{place: p, cfg: cfg, claims: filepath.Join(p.path, manifestDir, claimDir), manifests: filepath.Join(p.path, manifestDir)}
	return c, p.translate(c.probe())
}

// place is the directory of one sink.
type place struct {
	where  string // sinks.lake
	path   string
	format spec.FileFormat
}

func (p place) translate(err error) error { return translate(err, p.where, p.path) }

func pathOf(cfg sink.Config) (place, error) {
	target, ok := cfg.Sink.Config.(*spec.FilesSink)
	if !ok {
		return place{}, fmt.Errorf("open sink %s: its configuration is a %T", cfg.Sink.Name, cfg.Sink.Config)
	}
	p := place{where: "sinks." + cfg.Sink.Name, format: target.Files.Format}
	var err error
	if p.path, err = cfg.Resolve(target.Files.Path.String()); err != nil {
		return place{}, fmt.Errorf("resolve %s.files.path: %w", p.where, err)
	}
	p.path, err = filepath.Abs(p.path)
	return p, err
}

// probe makes the directories and tries a create-only link.
func (c *committer) probe() error {
	if err := durable.MakeDir(c.claims); err != nil {
		return err
	}
	name := filepath.Join(c.manifests, ".probe-"+c.cfg.Fence.String())
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer func() { _ = os.Remove(name) }() // the next probe removes it too
	if err := createOnly(name, []byte("probe\n"), c.unique("probe")); err != nil {
		return err
	}
	if err := createOnly(name, []byte("probe\n"), c.unique("probe")); !errors.Is(err, fs.ErrExist) {
		return fault.New(fault.SinkPathUnusable, c.where, "its file system lets a hard link replace a file", "path", c.path)
	}
	return nil
}

func (c *committer) unique(what string) string {
	return fmt.Sprintf("%s-%s-%d", what, c.cfg.Fence, os.Getpid())
}
