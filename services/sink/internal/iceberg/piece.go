package iceberg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/apache/iceberg-go"
	icecodec "github.com/apache/iceberg-go/codec"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/stage"
)

// piece describes what a writer has staged of one table: the JSON in a manifest. Rows that fit the table as it is are in data files
// of the warehouse; the others are on the bus, for the committer to write once it has made the table fit.
type piece struct {
	Table rows.TableID `json:"table"`
	// Truncate marks the place of a truncate among the writer's pieces.
	Truncate bool        `json:"truncate,omitempty"`
	Version  uint32      `json:"version,omitempty"`
	Files    []file      `json:"files,omitempty"`
	Parts    *stage.Desc `json:"parts,omitempty"`
	// Changes counts the rows for the changelog.
	Changes uint64 `json:"changes,omitempty"`
	// Fence is that of the attempt that staged it.
	Fence fence.Token `json:"fence"`

	writer int
	epoch  epoch.ID
}

// file is a staged file.
type file struct {
	Role role `json:"role"`
	// Table is the id of the table that it was written for.
	Table string `json:"table"`
	Spec  int    `json:"spec,omitempty"`
	// Entry is what the manifest of Iceberg will say of it, in the manifest's own encoding.
	Entry []byte `json:"entry"`
}

func parsePiece(st epoch.Staged) (*piece, error) {
	p := &piece{writer: st.Subtask.Index, epoch: st.Epoch}
	if err := json.Unmarshal(st.Data, p); err != nil {
		return nil, fmt.Errorf("read description of a staged piece: %w", err)
	}
	if p.Table == "" || (!p.Truncate && len(p.Files) == 0 && p.Parts == nil) {
		return nil, errors.New("read description of a staged piece: table or content missing")
	}
	return p, nil
}

func (l *layout) describe(e iceberg.DataFile) (file, error) {
	data, err := icecodec.EncodeDataFile(e, l.spec, l.table, formatVersion)
	if err != nil {
		return file{}, fmt.Errorf("describe a staged file of %s: %w", l.schema.Table(), err)
	}
	return file{Role: l.role, Table: l.id, Spec: l.spec.ID(), Entry: data}, nil
}

// open reads what describe wrote.
func (f file) open(meta table.Metadata) (iceberg.DataFile, error) {
	for _, s := range meta.PartitionSpecs() {
		if s.ID() == f.Spec {
			return icecodec.DecodeDataFile(f.Entry, s, meta.CurrentSchema(), formatVersion)
		}
	}
	return nil, fmt.Errorf("a staged file has partition spec %d, which the table does not have", f.Spec)
}

// staged are a piece's files for this table.
func (w *work) staged(p *piece) (data, deletes []iceberg.DataFile, err error) {
	for _, f := range p.Files {
		if f.Role != w.role {
			continue
		}
		if w.meta == nil || f.Table != w.meta.TableUUID().String() {
			return nil, nil, fault.New(fault.SinkStageLost, w.b.c.where+", table "+string(w.id), "rows were staged for a table that is no longer in the catalog")
		}
		e, err := f.open(w.meta)
		if err != nil {
			return nil, nil, err
		}
		if e.ContentType() == iceberg.EntryContentEqDeletes {
			deletes = append(deletes, e)
		} else {
			data = append(data, e)
		}
	}
	return data, deletes, nil
}

// rowless refuses files that were staged for a table which is not there.
func (w *work) rowless(ordered []*piece) error {
	for _, p := range ordered {
		if _, _, err := w.staged(p); err != nil {
			return err
		}
	}
	return nil
}

// inlineLimit is the size up to which rows travel inside the ack and the manifest.
const inlineLimit = 16 << 10

// ship makes parts safe on the bus.
func ship(ctx context.Context, store sink.Store, c *stage.Codec, s *rows.Schema, parts []stage.Part) (*stage.Desc, error) {
	data, err := c.Encode(parts)
	if err != nil {
		return nil, fmt.Errorf("stage rows of %s: %w", s.Table(), err)
	}
	d := &stage.Desc{Table: s.Table(), Version: s.Version()}
	if len(data) <= inlineLimit {
		d.Inline = data
		return d, nil
	}
	o, err := store.Put(ctx, data)
	if err != nil {
		return nil, fmt.Errorf("stage rows of %s: %w", s.Table(), err)
	}
	d.Object = &o
	return d, nil
}
