package iceberg

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/io/gocloud/s3" // and warehouses s3://
	"github.com/apache/iceberg-go/utils"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
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

// answerTimeout is how long an object store may take to begin its answer when it has the whole request. Nothing else ends a request
// that is lost: the library's files know the context that they were opened with, and none of the call.
const answerTimeout = 10 * time.Second

// maxIdle is how many connections to the store are kept for the next requests.
const maxIdle = 64

// remote opens the object store.
func (p *place) remote(ctx context.Context) error {
	props := iceberg.Properties{}
	for _, k := range []struct{ key, raw string }{
		{iceio.S3EndpointURL, p.ice.S3.Endpoint.String()},
		{iceio.S3Region, p.ice.S3.Region},
		{iceio.S3AccessKeyID, p.ice.S3.AccessKey.Raw()},
		{iceio.S3SecretAccessKey, p.ice.S3.SecretKey.Raw()},
	} {
		if k.raw == "" {
			continue
		}
		v, err := p.cfg.Resolve(k.raw)
		if err != nil {
			return fmt.Errorf("resolve %s.s3: %w", p.where, err)
		}
		props[k.key] = v
	}
	store, err := s3.ParseAWSConfig(ctx, props)
	if err != nil {
		return p.translate(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout, transport.MaxIdleConnsPerHost = answerTimeout, maxIdle
	store.HTTPClient = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	io, err := iceio.LoadFS(utils.WithAwsConfig(ctx, store), props, p.root)
	if err != nil {
		return p.translate(err)
	}
	w, ok := io.(iceio.WriteFileIO)
	if !ok {
		return fmt.Errorf("open warehouse of %s: %T cannot write", p.where, io)
	}
	p.fs = w
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
