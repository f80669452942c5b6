package sinktest

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// Fixture is one empty target and a sink that writes to it.
type Fixture struct {
	Connector sink.Connector
	// Spec is the sink's configuration; its mode decides what the suite expects to read.
	Spec spec.Sink
	// Resolve turns references in Spec into values.
	Resolve func(ref string) (string, error)
	// Read returns what a reader of the target sees of a source table, in the order of the changes where the mode keeps
	// it. Nil for a sink that shows nothing.
	Read func(tb testing.TB, table rows.TableID) []Row
	// Images returns every change that the target keeps beside the rows, in the order of each key. Nil for a sink in mode upsert that
	// keeps none.
	Images func(tb testing.TB, table rows.TableID) []Row
	// Meddle does something of what others may do to the target and changes no row, for [Random]. Optional.
	Meddle func(tb testing.TB, rng *rand.Rand)
	// Truncates says that the sink may follow TRUNCATE.
	Truncates bool
	// Poison makes the target refuse rows of a source table whose amount is Poisonous, and no others; the returned function
	// lets it take them again. The table is there. Nil for a sink whose target takes every row.
	Poison func(tb testing.TB, table rows.TableID) (heal func())
	// TinyEpochs is how many epochs of one row are committed in a row; 1,000 when zero.
	TinyEpochs int
	Logger     *slog.Logger
}

// Row is one row at the target.
type Row struct {
	// Op is set in changelog mode.
	Op rows.Op
	// Cells are the columns by name, as rows.Codec writes them; null is "NULL", a column that the source did not send
	// "ABSENT". Columns of the target that the source does not have are left out.
	Cells map[string]string
}

// Poisonous is the amount of rows that a poisoned target does not take.
const Poisonous = 666

// The words for cells without a value.
const (
	Null   = "NULL"
	Absent = "ABSENT"
)
