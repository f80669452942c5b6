package iceberg

import (
	"context"
	"fmt"
	"os"
	"strings"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
)

// Connector opens writers and committers for Iceberg tables.
type Connector struct{}

// Level is TRANSACTIONAL when the tables of an epoch and the ledger change in one transaction of the catalog, and ORDERED when the
// sink is told to commit to a REST catalog table after table.
func (Connector) Level(s spec.Sink) sink.Level {
	l, _ := plan.LevelOf(s)
	return l
}

// OpenWriter opens one writer. It reads the catalog and writes nothing to it.
func (Connector) OpenWriter(ctx context.Context, cfg sink.Config) (sink.Writer, error) {
	p, err := placeOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	w := &writer{place: p, changes: stage.ChangesOf(spec.Changelog, cfg.Subtask.Index)}
	if w.codec, err = stage.NewCodec(); err != nil {
		return nil, err
	}
	if w.tables, err = openTables(ctx, &w.place); err != nil {
		return nil, p.translate(err)
	}
	return w, nil
}

// OpenCommitter makes the catalog's tables when they are missing, and proves that the warehouse takes files.
func (Connector) OpenCommitter(ctx context.Context, cfg sink.Config) (sink.Committer, error) {
	p, err := placeOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c := &committer{place: p, states: make(map[pointer]*state), upkeep: newUpkeep()}
	if c.codec, err = stage.NewCodec(); err != nil {
		return nil, err
	}
	if c.tables, err = openTables(ctx, &c.place); err != nil {
		return nil, p.translate(err)
	}
	if err = c.tables.catalog.prepare(ctx); err != nil {
		err = fmt.Errorf("prepare the catalog: %w", err)
	} else {
		err = c.probe(cfg.Fence.String())
	}
	if err != nil {
		return nil, p.translate(fmt.Errorf("%w%s", err, closing(c.tables.close())))
	}
	return c, nil
}

func closing(err error) string {
	if err == nil {
		return ""
	}
	return "; closing the catalog: " + err.Error()
}

// probe proves that the warehouse takes files.
func (p *place) probe(who string) error {
	name := fmt.Sprintf("%s/%s/.probe-%s", p.root, p.ice.Namespace, who)
	if err := p.fs.WriteFile(name, []byte("probe\n")); err != nil {
		return fmt.Errorf("write to the warehouse: %w", err)
	}
	if err := p.fs.Remove(name); err != nil {
		return fmt.Errorf("remove from the warehouse: %w", err)
	}
	return nil
}

// ReadLedger reads a sink's ledger for people and audits. It changes nothing; a catalog without a ledger gives the zero value.
func ReadLedger(ctx context.Context, cfg sink.Config) (core.Ledger, error) {
	p, err := placeOf(ctx, cfg)
	if err != nil {
		return core.Ledger{}, err
	}
	if path, ok := strings.CutPrefix(p.catalog, sqliteScheme); ok {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return core.Ledger{}, nil
		}
	}
	c, err := openCatalog(ctx, &p, "weir:read:"+cfg.Job)
	if err != nil {
		return core.Ledger{}, p.translate(err)
	}
	l, err := c.history(ctx)
	if closeErr := c.close(); err == nil {
		err = closeErr
	}
	return l, p.translate(err)
}
