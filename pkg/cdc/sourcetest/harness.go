package sourcetest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// Harness is one database and a connector that reads it. Each case gets one of its own.
type Harness struct {
	Connector source.Connector
	Database  Database
	// Source makes the configuration of a source of these tables, named as [Database.Create] returned them.
	Source func(tables []rows.TableID, mode spec.SnapshotMode, chunkRows int) spec.Source
	// Resolve turns references in the configuration into values.
	Resolve func(ref string) (string, error)
	// Rows is how many rows a table has at first; 500 when zero.
	Rows int
	// Rounds is how many attempts a case with crashes has; 8 when zero.
	Rounds int
	// Quiet is how long nothing may come before the sink is said to be at rest with something missing; 10 s when zero.
	Quiet time.Duration
	// Seed makes the choices of the suite; its failures name it.
	Seed   uint64
	Logger *slog.Logger
}

// KeyKind is the kind of a table's key.
type KeyKind string

// The kinds. Key columns are made from n, so that different n have different keys.
const (
	IntegerKey   KeyKind = "integer"   // id bigint
	CompositeKey KeyKind = "composite" // two columns, whose order as a tuple is not that of n
	TextKey      KeyKind = "text"      // under a collation that is not that of bytes
	UUIDKey      KeyKind = "uuid"
	NoKey        KeyKind = "none" // the log carries whole old rows
)

// Row is what the suite knows of a row. Every table has a bigint column for each, "n" and "val", besides its key columns.
type Row struct {
	// N names the row; Val is its value, never written twice.
	N, Val int64
}

// Database is what the suite does to the source's database. Methods are called from many goroutines.
type Database interface {
	// Create makes a table with rows and returns its name as batches carry it. The name is not in use.
	Create(ctx context.Context, name string, kind KeyKind, content []Row) (rows.TableID, error)
	// Begin begins a transaction on a connection of its own.
	Begin(ctx context.Context) (Tx, error)
	// Read returns the table's rows, by n.
	Read(ctx context.Context, table rows.TableID) (map[int64]int64, error)
	// Kill ends every connection of the connector at the server.
	Kill(ctx context.Context) error
}

// ErrRolledBack says that the database has ended a transaction by itself, of two that waited for each other: nothing of it was
// written, and whoever wrote goes on with another.
var ErrRolledBack = errors.New("rolled back by the database")

// Tx is a transaction. Two of them never change one row at the same time. A change may fail with [ErrRolledBack].
type Tx interface {
	Insert(ctx context.Context, table rows.TableID, r Row) error
	// Update sets the value of row n.
	Update(ctx context.Context, table rows.TableID, r Row) error
	// Move gives row n another n, and so another key, and a value.
	Move(ctx context.Context, table rows.TableID, n int64, to Row) error
	Delete(ctx context.Context, table rows.TableID, n int64) error
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}
