package iceberg

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/iceberg/objects"
)

// place is one sink's target: warehouse, catalog, and how its tables are called.
type place struct {
	where string // sinks.lake
	cfg   sink.Config
	ice   *spec.IcebergSink
	// root is the warehouse as a URI without a slash at its end.
	root string
	// catalog is the resolved address of the catalog.
	catalog string
	fs      iceio.WriteFileIO
}

// placeOf resolves a sink's configuration and opens the warehouse; nothing is asked of it yet.
func placeOf(ctx context.Context, cfg sink.Config) (place, error) {
	ice, ok := cfg.Sink.Config.(*spec.IcebergSink)
	if !ok {
		return place{}, fmt.Errorf("open sink %s: its configuration is a %T", cfg.Sink.Name, cfg.Sink.Config)
	}
	p := place{where: "sinks." + cfg.Sink.Name, cfg: cfg, ice: ice}
	if p.ice.Namespace == "" || p.ice.Table == "" { // made by hand: the decoder fills them
		filled := *ice
		filled.Namespace, filled.Table = cmp.Or(ice.Namespace, "weir"), cmp.Or(ice.Table, "{table}")
		p.ice = &filled
	}
	var err error
	if p.root, err = cfg.Resolve(ice.Warehouse.String()); err != nil {
		return place{}, fmt.Errorf("resolve %s.warehouse: %w", p.where, err)
	}
	if !ice.Catalog.IsZero() {
		if p.catalog, err = cfg.Resolve(ice.Catalog.Raw()); err != nil {
			return place{}, fmt.Errorf("resolve %s.catalog: %w", p.where, err)
		}
	}
	if !p.served() && ice.REST != (spec.IcebergREST{}) {
		return place{}, fault.New(fault.SinkBadURL, p.where+".catalog", "the sink has settings for a REST catalog, and the address does not begin with https://",
			"where", p.where+".catalog")
	}
	if spec.Remote(p.root) {
		p.root = strings.TrimRight(p.root, "/")
		return p, p.remote(ctx)
	}
	dir, err := filepath.Abs(strings.TrimPrefix(p.root, fileScheme))
	if err != nil {
		return place{}, fmt.Errorf("resolve %s.warehouse: %w", p.where, err)
	}
	if escaped := (&url.URL{Path: dir}).EscapedPath(); escaped != dir {
		// Readers do not agree on how such a name is written in a URI.
		return place{}, fault.New(fault.SinkPathUnusable, p.where, "the name of the warehouse has characters that URIs escape: "+escaped, "path", dir)
	}
	if p.catalog == "" {
		p.catalog = sqliteScheme + filepath.Join(dir, "catalog.db")
	}
	p.root, p.fs = fileScheme+dir, localFiles{}
	return p, nil
}

// remote opens the object store.
func (p *place) remote(ctx context.Context) error {
	var access objects.Access
	for _, v := range []struct {
		raw string
		to  *string
	}{
		{p.ice.S3.Endpoint.String(), &access.Endpoint},
		{p.ice.S3.Region, &access.Region},
		{p.ice.S3.AccessKey.Raw(), &access.AccessKey},
		{p.ice.S3.SecretKey.Raw(), &access.SecretKey},
	} {
		if v.raw == "" {
			continue
		}
		var err error
		if *v.to, err = p.cfg.Resolve(v.raw); err != nil {
			return fmt.Errorf("resolve %s.s3: %w", p.where, err)
		}
	}
	var err error
	if p.fs, err = objects.Open(ctx, p.root, access, p.cfg.Logger); err != nil {
		return p.translate(fmt.Errorf("open the warehouse: %w", err))
	}
	return nil
}

// files gives the library the warehouse.
func (p *place) files(context.Context) (iceio.IO, error) { return p.fs, nil }

// role says which of a source table's tables is meant.
type role string

const (
	current   role = "current"
	changelog role = "changelog"
)

// roles are the tables that the sink keeps for each source table.
func (p *place) roles() []role {
	switch {
	case p.cfg.Sink.Mode == spec.Changelog:
		return []role{changelog}
	case p.ice.Changelog != "":
		return []role{changelog, current}
	}
	return []role{current}
}

// name is the name of a source table's table.
func (p *place) name(r role, id rows.TableID) string {
	pattern := p.ice.Table
	if r == changelog && p.cfg.Sink.Mode != spec.Changelog {
		pattern = p.ice.Changelog
	}
	schema, table, ok := strings.Cut(string(id), ".")
	if !ok {
		schema, table = "", string(id)
	}
	return p.ice.TableName(pattern, schema, table)
}

// location is where a new table's files go; id keeps it apart from a table of the same name that somebody has dropped.
func (p *place) location(name string, id uuid.UUID) string {
	safe := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
	return p.root + "/" + p.ice.Namespace + "/" + safe + "-" + id.String()[:8]
}
