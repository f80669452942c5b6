package iceberg

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/services/sink/internal/core"
)

// The log at a REST catalog keeps the newest restLogKept snapshots and up to restLogSlack more: a server reads and writes all of
// them at every commit.
const (
	restLogKept  = 100
	restLogSlack = 50
)

// The ledger's row is in the properties of its table.
const (
	propLife      = "weir.life"
	propFence     = "weir.fence"
	propEpoch     = "weir.epoch"
	propDigest    = "weir.digest"
	propPositions = "weir.positions"
	propPrev      = "weir.prev-epoch"  // of a snapshot
	propPrevSum   = "weir.prev-digest" // of a snapshot
	propRows      = "weir.rows"        // of a snapshot
	propTable     = "weir.table."      // and the name of a table that has had an epoch: its id
)

// restLedger is the metadata of the ledger's table. The table never has rows: its properties are the ledger's row, and every change
// of them comes with a snapshot without files. What the newest snapshot is, which a server compares when it commits, tells
// whether the row is the one that was read; the summaries of the snapshots are the log.
type restLedger struct {
	ID         uuid.UUID         `json:"table-uuid"`
	Location   string            `json:"location"`
	Properties map[string]string `json:"properties"`
	Current    *int64            `json:"current-snapshot-id"`
	Sequence   int64             `json:"last-sequence-number"`
	Schema     int               `json:"current-schema-id"`
	Snapshots  []table.Snapshot  `json:"snapshots"`
}

// ledgerName is the name of the ledger's table.
func (p *place) ledgerName() string {
	return "weir_ledger_" + strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, p.cfg.Job+"_"+p.cfg.Sink.Name)
}

// newLedger is the ledger's table before the first claim. Tables need a column.
func (p *place) newLedger() (table.Metadata, error) {
	id := uuid.New()
	columns := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "epoch", Type: iceberg.PrimitiveTypes.Int64})
	return table.NewMetadataWithUUID(columns, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, p.location(p.ledgerName(), id),
		iceberg.Properties{propOwner: p.owner(), propRole: "ledger", table.PropertyFormatVersion: strconv.Itoa(formatVersion)}, id)
}

// main is the newest snapshot; nil when there is none.
func (l *restLedger) main() *int64 {
	if l.Current == nil || *l.Current < 0 {
		return nil
	}
	return l.Current
}

func (l *restLedger) row() (core.Row, error) {
	row := core.Row{Life: l.Properties[propLife]}
	if row.Life == "" {
		return core.Row{}, nil
	}
	var err error
	if row.Fence, err = fence.ParseToken(l.Properties[propFence]); err != nil {
		return core.Row{}, fmt.Errorf("fence of the ledger: %w", err)
	}
	if row.Ref, err = refOf(l.Properties[propEpoch], l.Properties[propDigest]); err != nil {
		return core.Row{}, fmt.Errorf("epoch of the ledger: %w", err)
	}
	return row, nil
}

func refOf(e, digest string) (epoch.Ref, error) {
	n, err := strconv.ParseUint(e, 10, 64)
	return epoch.Ref{Epoch: epoch.ID(n), Digest: digest}, err
}

// history is the ledger for people and audits.
func (l *restLedger) history() (core.Ledger, error) {
	row, err := l.row()
	if err != nil || row == (core.Row{}) {
		return core.Ledger{}, err
	}
	out := core.Ledger{Life: row.Life, Fence: row.Fence, Ref: row.Ref}
	if err := json.Unmarshal([]byte(l.Properties[propPositions]), &out.Positions); err != nil {
		return out, fmt.Errorf("positions of the ledger: %w", err)
	}
	for _, s := range l.inOrder() {
		if s.Summary == nil || s.Summary.Properties[propEpoch] == "" {
			continue // a claim, or another engine's
		}
		e, err := logged(s.Summary.Properties)
		if err != nil {
			return out, fmt.Errorf("snapshot %d of the ledger: %w", s.SnapshotID, err)
		}
		e.At = time.UnixMilli(s.TimestampMs).UTC()
		out.Log = append(out.Log, e)
	}
	return out, nil
}

func logged(props map[string]string) (e core.Entry, err error) {
	if e.Ref, err = refOf(props[propEpoch], props[propDigest]); err != nil {
		return e, err
	}
	if e.Prev, err = refOf(props[propPrev], props[propPrevSum]); err != nil {
		return e, err
	}
	if e.Fence, err = fence.ParseToken(props[propFence]); err != nil {
		return e, err
	}
	e.Rows, err = strconv.ParseUint(props[propRows], 10, 64)
	return e, err
}

func (l *restLedger) inOrder() []table.Snapshot {
	return slices.SortedFunc(slices.Values(l.Snapshots), func(x, y table.Snapshot) int {
		return int(min(max(x.SequenceNumber-y.SequenceNumber, -1), 1))
	})
}

// step is the next change of the ledger: the properties that become its row, and what the log says of it.
type step struct {
	row, log map[string]string
	// list is the file that the step's snapshot needs, and what is in it.
	list string
	data []byte
	// expired are the files of snapshots that the step removes.
	expired []string
}

// taken is the step of a claim.
func (l *restLedger) taken(life string, own fence.Token) step {
	return step{
		row: map[string]string{
			propLife: life, propFence: own.String(), propEpoch: cmp.Or(l.Properties[propEpoch], "0"), propDigest: l.Properties[propDigest],
			propPositions: cmp.Or(l.Properties[propPositions], "{}"),
		},
		log: map[string]string{"weir.claim": own.String()},
	}
}

// advanced is the step of an epoch.
func (l *restLedger) advanced(e entry) (step, error) {
	positions, err := json.Marshal(e.positions)
	if err != nil {
		return step{}, fmt.Errorf("encode positions: %w", err)
	}
	number := func(id epoch.ID) string { return strconv.FormatUint(uint64(id), 10) }
	return step{
		row: map[string]string{propEpoch: number(e.ref.Epoch), propDigest: e.ref.Digest, propPositions: string(positions)},
		log: map[string]string{
			propEpoch: number(e.ref.Epoch), propDigest: e.ref.Digest, propPrev: number(e.prev.Epoch), propPrevSum: e.prev.Digest,
			propFence: e.fence.String(), propRows: strconv.FormatUint(e.rows, 10),
		},
	}, nil
}

// change is a step as a commit, which holds only on the ledger as it is here.
func (l *restLedger) change(p pointer, s *step, now time.Time) (tableChange, error) {
	id, sequence := rand.Int64(), l.Sequence+1
	var list bytes.Buffer
	if err := iceberg.WriteManifestList(formatVersion, &list, id, l.main(), &sequence, 0, nil); err != nil {
		return tableChange{}, fmt.Errorf("encode the ledger's list of files: %w", err)
	}
	s.list, s.data = fmt.Sprintf("%s/metadata/snap-%d-%s.avro", l.Location, id, uuid.New()), list.Bytes()
	summary := maps.Clone(s.log)
	for _, total := range []string{"total-records", "total-data-files", "total-delete-files", "total-files-size"} {
		summary[total] = "0"
	}
	c := tableChange{
		Identifier: p.identifier(),
		Requirements: table.Requirements{
			table.AssertTableUUID(l.ID), table.AssertRefSnapshotID(table.MainBranch, l.main()),
		},
		Updates: table.Updates{
			table.NewSetPropertiesUpdate(s.row),
			table.NewAddSnapshotUpdate(&table.Snapshot{
				SnapshotID: id, ParentSnapshotID: l.main(), SequenceNumber: sequence, TimestampMs: now.UnixMilli(), ManifestList: s.list,
				SchemaID: &l.Schema, Summary: &table.Summary{Operation: table.OpAppend, Properties: summary},
			}),
			table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 0, 0, 0),
		},
	}
	if old := l.inOrder(); len(old) >= restLogKept+restLogSlack {
		for _, x := range old[:len(old)-restLogKept] {
			s.expired = append(s.expired, x.ManifestList)
			c.Updates = append(c.Updates, table.NewRemoveSnapshotsUpdate([]int64{x.SnapshotID}, false))
		}
	}
	return c, nil
}
