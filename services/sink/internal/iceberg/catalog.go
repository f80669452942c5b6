package iceberg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/sink/internal/core"
)

// catalog keeps for each table where its newest metadata is, and the sink's ledger: [sqlCatalog] in a database that the sink
// writes itself, [restCatalog] at a server that writes the metadata.
type catalog interface {
	// prepare makes what the catalog lacks before anything is claimed.
	prepare(ctx context.Context) error
	// row is the ledger's row; the zero Row when there is none.
	row(ctx context.Context) (core.Row, error)
	// claim writes an attempt into the ledger's row if allow agrees to the row that is there, which it returns.
	claim(ctx context.Context, life string, own fence.Token, allow func(core.Row) error) (core.Row, error)
	// history is the row and the newest commits, of one moment.
	history(ctx context.Context) (core.Ledger, error)
	// load finds a table's newest metadata; nil when the catalog does not have the table. had is what is known of it, which is not
	// read again unless it moved.
	load(ctx context.Context, p pointer, had *state) (at string, meta table.Metadata, err error)
	// had reports whether an epoch of this life has been in a table: if load does not find it, somebody has dropped it.
	had(ctx context.Context, p pointer) (bool, error)
	// begin takes the first metadata of a table that load did not find and returns that on which the first commit is built. What it
	// leaves behind when no commit follows has no rows.
	begin(ctx context.Context, p pointer, first table.Metadata) (at string, meta table.Metadata, err error)
	// stage writes what a commit needs besides the change; at is where the metadata will be, as far as the sink decides that.
	stage(ctx context.Context, last *state, next table.Metadata) (at string, err error)
	// apply makes a change. unknown is true when the error leaves open whether it was made; errMoved says that it was not, because a
	// table is no longer what the change was built on.
	apply(ctx context.Context, ch change) (unknown bool, err error)
	close() error
}

// pointer names a table in the catalog.
type pointer struct {
	namespace, name string
}

// move takes a table from one state to the next.
type move struct{ from, to *state }

// change is everything that one commit changes in the catalog.
type change struct {
	moves []move
	// entry is the epoch for the ledger; nil when the commit is none of an epoch.
	entry *entry
	// allow judges the ledger's row. Nobody else changes the row between its answer and the change of the row.
	allow func(core.Row) error
}

// entry is one commit for the ledger.
type entry struct {
	ref, prev epoch.Ref
	fence     fence.Token
	positions map[string]position.Position
	rows      uint64
}

// errMoved says that a table's metadata is not the one that a commit was built on.
var errMoved = errors.New("another commit has changed the table")

// openCatalog connects to the place's catalog. session names the process to a database's administrator.
func openCatalog(ctx context.Context, p *place, session string) (catalog, error) {
	if p.served() {
		return openREST(ctx, p)
	}
	return openSQL(p, session)
}

// session is how the process is known at the catalog.
func (p *place) session() string {
	return fmt.Sprintf("weir:%s:%s:%s", p.cfg.Life, p.cfg.Subtask.Vertex, p.cfg.Fence)
}

// served reports whether the catalog is a server that writes the tables' metadata itself.
func (p *place) served() bool {
	return strings.HasPrefix(p.catalog, "https://") || strings.HasPrefix(p.catalog, "http://")
}
