package cdcpostgres

import (
	"encoding/binary"
	"log/slog"
	"testing"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// wire builds a stretch of log as the server sends it.
type wire struct {
	b         []byte
	relations []pgrepl.Relation
	tables    []*described
}

func (w *wire) data(message []byte) *wire {
	if message[0] == pgoutput.KindRelation {
		w.relations = append(w.relations, pgrepl.Relation{At: len(w.b)})
	}
	w.b = append(w.b, 'd')
	w.b = binary.BigEndian.AppendUint32(w.b, uint32(4+25+len(message)))
	w.b = append(append(append(w.b, 'w'), make([]byte, 24)...), message...)
	return w
}

func (w *wire) keepalive(at position.LSN) *wire {
	w.b = append(w.b, 'd', 0, 0, 0, 22, 'k')
	w.b = binary.BigEndian.AppendUint64(w.b, uint64(at))
	w.b = append(w.b, make([]byte, 9)...)
	return w
}

func (w *wire) begin(final position.LSN, xid uint32) *wire {
	m := binary.BigEndian.AppendUint64([]byte{'B'}, uint64(final))
	m = binary.BigEndian.AppendUint64(m, 0)
	return w.data(binary.BigEndian.AppendUint32(m, xid))
}

func (w *wire) commit(final, end position.LSN) *wire {
	m := binary.BigEndian.AppendUint64([]byte{'C', 0}, uint64(final))
	m = binary.BigEndian.AppendUint64(m, uint64(end))
	return w.data(binary.BigEndian.AppendUint64(m, 0))
}

// table describes a table; where the relation message stands only its place counts.
func (w *wire) table(d *described) *wire {
	w.tables = append(w.tables, d)
	return w.data([]byte{pgoutput.KindRelation})
}

// row is a message with one or two rows, each introduced by its kind ('N', 'K', 'O').
func (w *wire) row(kind byte, oid uint32, parts ...[]byte) *wire {
	m := binary.BigEndian.AppendUint32([]byte{kind}, oid)
	for _, p := range parts {
		m = append(m, p...)
	}
	return w.data(m)
}

// tuple is a row in text form; "\x00n" is null, "\x00u" an unchanged out-of-line value.
func tuple(kind byte, cells ...string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(cells)))
	for _, c := range cells {
		if len(c) == 2 && c[0] == 0 {
			b = append(b, c[1])
			continue
		}
		b = binary.BigEndian.AppendUint32(append(b, 't'), uint32(len(c)))
		b = append(b, c...)
	}
	return b
}

const (
	null      = "\x00n"
	unchanged = "\x00u"
)

func (w *wire) item() item {
	return item{chunk: pgrepl.Chunk{Data: w.b, Relations: w.relations}, tables: w.tables}
}

// plain are the built-in types the tests use.
var plain = map[uint32]catalog.Type{
	16: {OID: 16, Name: "boolean", Kind: 'b'}, 20: {OID: 20, Name: "bigint", Kind: 'b'}, 23: {OID: 23, Name: "integer", Kind: 'b'},
	25: {OID: 25, Name: "text", Kind: 'b'}, 701: {OID: 701, Name: "double precision", Kind: 'b'},
	1184: {OID: 1184, Name: "timestamp with time zone", Kind: 'b'}, 1186: {OID: 1186, Name: "interval", Kind: 'b'},
	1700: {OID: 1700, Name: "numeric", Kind: 'b'}, 2950: {OID: 2950, Name: "uuid", Kind: 'b'},
}

// newTestReader is a reader whose link is only a queue.
func newTestReader(tb testing.TB, from core.Position, cfg source.Config) *reader {
	tb.Helper()
	if cfg.Batch == 0 {
		cfg.Batch = 256 << 10
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	p := newProgress(none(), false)
	l := &link{queue: halves.NewQueue[item](queueBytes), progress: p, end: newDrainEnd(), looks: halves.NewLooks(), requests: make(chan struct{}, 1), replace: func() {}, kick: make(chan struct{}, 1)}
	r := newReader(cfg, &opened{cfg: cfg, source: new(spec.PostgresSource), where: "sources.db"}, l, p)
	r.tracker = core.NewTracker(from)
	p.start(from)
	return r
}
