package sourcetest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/internal/minidb"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// fault is planted in the connector, for the suite to find.
type fault string

const (
	sound          fault = ""
	marksByLog     fault = "marks by the order of the log"
	noFilter       fault = "a log without its filter"
	noReports      fault = "finished chunks that no state has"
	noParts        fault = "an enumerator restored without the readers' parts"
	tornChunks     fault = "a barrier within a chunk"
	positionAhead  fault = "a position behind what was emitted"
	positionBehind fault = "a restart at the beginning of a cut transaction"
	movesByNew     fault = "a key change judged by the new key"
	earlyEnd       fault = "a drain that ends with the snapshot"
)

var errKilled = errors.New("connection killed")

// connector reads a fakeDB by pkg/cdc.
type connector struct {
	db    *fakeDB
	fault fault
}

func harness(f fault, seed uint64) Harness {
	db := newFakeDB()
	return Harness{
		Connector: connector{db, f}, Database: db, Seed: seed,
		Source: func(_ []rows.TableID, mode spec.SnapshotMode, chunkRows int) spec.Source {
			return spec.Source{Name: "db", Config: &spec.PostgresSource{Snapshot: spec.Snapshot{Mode: mode, ChunkRows: chunkRows}}}
		},
	}
}

// session is a connection that Kill ends.
type session struct {
	db   *fakeDB
	born int
}

func (d *fakeDB) connect() session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return session{d, d.killed}
}

// look runs f on the database and returns what tells of changes after it.
func (s session) look(f func(db *minidb.DB)) (<-chan struct{}, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	if s.born != s.db.killed {
		return nil, errKilled
	}
	f(s.db.db)
	return s.db.changed, nil
}

type enumeratorState struct {
	Start  int
	Inline []byte
}

type enumerator struct {
	session
	fault    fault
	start    int
	a        *cdc.Assigner
	settle   cdc.Settle
	unseen   []*minidb.Txn
	settling bool
	draining bool
}

func (c connector) OpenEnumerator(_ context.Context, cfg source.Config) (source.Enumerator, error) {
	e := &enumerator{session: c.db.connect(), fault: c.fault}
	snapshot := cfg.Source.Config.(*spec.PostgresSource).Snapshot
	config := cdc.Config{
		Mode:    map[spec.SnapshotMode]cdc.Mode{spec.SnapshotInitial: cdc.Initial, spec.SnapshotOnly: cdc.Only, spec.SnapshotNever: cdc.Never}[snapshot.Mode],
		Readers: cfg.Readers, ChunkRows: int64(snapshot.ChunkRows),
	}
	var tables []cdc.Table
	for _, t := range c.db.tables {
		tables = append(tables, cdc.Table{ID: cdc.TableID(t.number), Name: string(t.id), Keyless: t.kind == NoKey})
	}
	if cfg.Restore == nil {
		e.a = cdc.NewAssigner(config, tables)
		_, err := e.look(func(db *minidb.DB) { e.start = len(db.Log) })
		return e, err
	}
	var s enumeratorState
	if err := json.Unmarshal(cfg.Restore, &s); err != nil {
		return nil, err
	}
	head, segments, err := cdc.OpenInline(s.Inline)
	if err != nil {
		return nil, err
	}
	e.start = s.Start
	if c.fault == noParts {
		cfg.Parts = nil
	}
	e.a, err = cdc.RestoreAssigner(config, head, segments, cfg.Parts)
	return e, err
}

func (e *enumerator) Poll(ctx context.Context, out source.Directory, wake <-chan struct{}) (source.Status, error) {
	for {
		effects := e.a.Effects()
		for _, effect := range effects {
			switch f := effect.(type) {
			case cdc.Tell:
				payload := binary.AppendUvarint(nil, uint64(e.start))
				if err := out.Tell(ctx, f.Reader, append(payload, f.Payload...)); err != nil {
					return source.Status{}, err
				}
			case cdc.AskBounds:
				if err := e.bounds(f); err != nil {
					return source.Status{}, err
				}
			case cdc.Settle:
				e.settle, e.settling = f, true
				if _, err := e.look(func(db *minidb.DB) { e.unseen = slices.Clone(db.Unseen) }); err != nil {
					return source.Status{}, err
				}
			}
		}
		seen := true
		changed, err := e.look(func(db *minidb.DB) {
			seen = !slices.ContainsFunc(e.unseen, func(t *minidb.Txn) bool { return slices.Contains(db.Unseen, t) })
		})
		if err != nil {
			return source.Status{}, err
		}
		if e.settling && seen {
			e.settling = false
			e.a.Settled(e.settle.Round)
			continue
		}
		if e.a.Ended() || e.draining && (e.a.Lifecycle() == cdc.Incremental || e.fault == earlyEnd) {
			return source.Status{Drained: true}, nil
		}
		if len(effects) > 0 { // bounds were answered at once, which has effects of its own
			continue
		}
		select {
		case <-wake:
			return source.Status{}, nil
		case <-changed:
		case <-ctx.Done():
			return source.Status{}, context.Cause(ctx)
		}
	}
}

// bounds answers at once: the database is quick.
func (e *enumerator) bounds(q cdc.AskBounds) error {
	var bounds []cdc.Key
	last := true
	t := e.db.tables[q.Table]
	if _, err := e.look(func(db *minidb.DB) {
		keys := slices.SortedFunc(maps.Keys(db.Rows[t.number]), t.compare)
		if q.After != nil {
			keys = slices.DeleteFunc(keys, func(n int) bool { return t.compare(n, t.bound(q.After)) <= 0 })
		}
		for i := int(q.Rows); i < len(keys); i += int(q.Rows) {
			if last = len(bounds) < 4; !last {
				break
			}
			bounds = append(bounds, t.key(keys[i]))
		}
	}); err != nil {
		return err
	}
	return e.a.Bounded(q.Table, q.After, bounds, last)
}

func (e *enumerator) Snapshot(n epoch.ID) (source.Cut, error) {
	b, err := json.Marshal(enumeratorState{Start: e.start, Inline: e.a.Snapshot(n).Inline()})
	return source.Cut{State: b}, err
}

func (e *enumerator) Receive(reader int, payload []byte) error { return e.a.Receive(reader, payload) }
func (e *enumerator) Confirm(n epoch.ID, _ source.Cut)         { e.a.Committed(n) }
func (e *enumerator) Durable(epoch.ID)                         {}
func (e *enumerator) Report() report.Enumerator                { return report.Enumerator{} }
func (e *enumerator) Close() error                             { return nil }

func (e *enumerator) Drain(context.Context) error {
	e.draining = true
	return nil
}

func (c connector) Release(context.Context, source.Config) error { return nil }
