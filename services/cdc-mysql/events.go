package cdcmysql

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// stepKind is what a step of the log is.
type stepKind uint8

const (
	stepBegin stepKind = iota + 1
	stepRows
	stepTruncate
	stepCommit
	stepIdle // nothing is open, and the log is at end
	// stepRemove takes tables away.
	stepRemove
	// stepPrepare ends a distributed transaction whose outcome is to come, stepOutcome is that.
	stepPrepare
	stepOutcome
	// stepBroken says that the server ended amid the open transaction, which has not happened.
	stepBroken
)

// change is what a rows event does.
type change uint8

const (
	inserted change = iota
	updated
	deleted
)

// step is one step of the log as it matters here.
type step struct {
	kind   stepKind
	txn    core.Txn
	time   int64
	table  *described // of rows; not captured ones count too, without an image
	change change
	image  []byte
	places []int // of the rows' keys in the order of the image, where they had to be located
	tables []*capturedTable
	end    position.BinlogPos
	size   int
	// err is what stops the source, unless the copies of the tables have the step.
	err error
	// xa says that the rows are of a distributed transaction, and xid which one is prepared or, unless it is committed, rolled
	// back.
	xa        bool
	xid       string
	committed bool
	once      bool // prepared and committed in one
	// rows are those of a transaction that was prepared before the log of the job begins; nil when they were not found.
	rows *held
}

// events makes steps of the events of one stream.
type events struct {
	*opened

	family   position.Type
	charsets map[uint64]string
	captured map[core.Name]*capturedTable

	maps   map[uint64]*described
	known  map[core.Name]*described
	inside bool // a transaction whose end is an event of its own
	xa     bool
	rows   int // rows events of captured tables in the transaction
	before position.BinlogPos
}

func newEvents(o *opened, s *enumeratorState) *events {
	return &events{
		opened: o, family: s.Start.Family, charsets: s.Charsets, captured: byName(s.Tables),
		maps: make(map[uint64]*described), known: make(map[core.Name]*described),
	}
}

// next waits for the next event that is a step.
func (v *events) next(s *server.Stream) (step, error) {
	for {
		v.before = s.At()
		e, err := s.Next()
		if err != nil {
			return step{}, err
		}
		st, err := v.step(e, s.At())
		if err != nil {
			return step{}, err
		}
		if st.kind != 0 {
			st.size = len(e.RawData)
			return st, nil
		}
	}
}

func (v *events) step(e *replication.BinlogEvent, at position.BinlogPos) (step, error) {
	switch ev := e.Event.(type) {
	case *replication.RowsEvent:
		return v.rowsEvent(e, ev)
	case *replication.TableMapEvent:
		v.tableMap(e, ev)
	case *replication.GTIDEvent:
		return v.begin(e, ev, ""), nil
	case *replication.GtidTaggedLogEvent:
		return v.begin(e, &ev.GTIDEvent, ev.Tag.String()), nil
	case *replication.MariadbGTIDEvent:
		v.inside, v.xa, v.rows = ev.Flags&replication.BINLOG_MARIADB_FL_STANDALONE == 0, ev.Flags&mariaPrepared != 0, 0
		t := position.MariaGTID{Domain: ev.GTID.DomainID, Server: ev.GTID.ServerID, N: ev.GTID.SequenceNumber}
		return step{kind: stepBegin, txn: core.Txn{Maria: t}, time: int64(e.Header.Timestamp) * 1e6}, nil
	case *replication.XIDEvent:
		return v.commit(at), nil
	case *replication.QueryEvent:
		return v.statement(ev, at)
	case *replication.HeartbeatEvent, *replication.PreviousGTIDsEvent, *replication.MariadbGTIDListEvent:
		return step{kind: stepIdle, end: at}, nil
	case *replication.FormatDescriptionEvent:
		if v.inside && ev.CreateTimestamp != 0 { // of a server that begins
			v.inside, v.maps = false, make(map[uint64]*described)
			return step{kind: stepBroken, end: at}, nil
		}
	case *replication.RotateEvent:
		v.maps = make(map[uint64]*described)
		return step{kind: stepIdle, end: at}, nil
	case *replication.GenericEvent:
		if e.Header.EventType == replication.XA_PREPARE_LOG_EVENT {
			return v.prepared(ev.Data, at)
		}
	}
	return step{}, nil
}

func (v *events) begin(e *replication.BinlogEvent, ev *replication.GTIDEvent, tag string) step {
	v.inside, v.xa, v.rows = false, false, 0
	st := step{kind: stepBegin, time: int64(ev.ImmediateCommitTimestamp)}
	if st.time == 0 {
		st.time = int64(e.Header.Timestamp) * 1e6
	}
	if v.family == position.MySQLGTID {
		st.txn.GTID = position.GTID{Origin: position.Origin{UUID: [16]byte(ev.SID), Tag: tag}, N: uint64(ev.GNO)}
	} else {
		st.txn.Start = v.before
	}
	return st
}

func (v *events) commit(at position.BinlogPos) step {
	v.inside = false
	return step{kind: stepCommit, end: at}
}

// mariaPrepared is the flag of a transaction that is prepared and not committed.
const mariaPrepared = 64

// prepared ends a distributed transaction: once, or with its outcome to come.
func (v *events) prepared(body []byte, at position.BinlogPos) (step, error) {
	st := v.commit(at)
	const head = 1 + 3*4 // whether it ends at once, the format, and the lengths of both parts of the name
	if len(body) < head {
		return step{}, fault.New(fault.MYDecode, v.where, fmt.Sprintf("the end of a distributed transaction of %d bytes", len(body)))
	}
	format, global := binary.LittleEndian.Uint32(body[1:]), uint64(binary.LittleEndian.Uint32(body[5:]))
	both := global + uint64(binary.LittleEndian.Uint32(body[9:]))
	name := body[head:]
	if uint64(len(name)) < both {
		return step{}, fault.New(fault.MYDecode, v.where, "the name of a distributed transaction is cut off")
	}
	st.kind, st.xid = stepPrepare, core.XID(name[:global], name[global:both], format)
	if body[0] != 0 {
		st.kind, st.committed, st.once = stepOutcome, true, true
	}
	return st, nil
}

// statement takes a statement of the log. One that is no part of a larger transaction is a transaction of its own.
func (v *events) statement(ev *replication.QueryEvent, at position.BinlogPos) (step, error) {
	st := core.Classify(string(ev.Query), string(ev.Schema))
	removed := step{kind: stepRemove, end: at}
	switch st.Kind {
	case core.Begin:
		v.inside = true
		return step{}, nil
	case core.XABegin:
		v.inside, v.xa = true, true
		return step{}, nil
	case core.Commit:
		return v.commit(at), nil
	case core.Rollback:
		if v.rows > 0 {
			return step{}, fault.New(fault.MYDecode, v.where, "a transaction with rows of captured tables was logged and rolled back, at "+at.String())
		}
		return v.commit(at), nil
	case core.Truncate:
		emptied := step{kind: stepTruncate, end: at}
		for _, n := range st.Tables {
			if t := v.captured[n]; t != nil {
				emptied.tables = append(emptied.tables, t)
			}
		}
		return emptied, nil
	case core.Remove:
		for _, n := range st.Tables {
			if t := v.captured[n]; t != nil {
				removed.tables = append(removed.tables, t)
			}
		}
	case core.RemoveSchema:
		for n, t := range v.captured {
			if n.Schema == st.Schema {
				removed.tables = append(removed.tables, t)
			}
		}
	case core.XAOutcome:
		v.inside = false
		return step{kind: stepOutcome, xid: st.XID, committed: st.Committed, end: at}, nil
	case core.XAEnd, core.Other:
	}
	if len(removed.tables) > 0 {
		name := removed.tables[0].String()
		removed.err = fault.New(fault.MYTableRemoved, v.where, fmt.Sprintf("table %s, at %s", name, at), "table", name, "job", v.cfg.Job)
		return removed, nil
	}
	if v.inside {
		return step{}, nil // a savepoint, or a table made of rows that follow
	}
	return v.commit(at), nil
}

// tableMap describes a table, once as long as its description stays the same.
func (v *events) tableMap(e *replication.BinlogEvent, ev *replication.TableMapEvent) {
	name := core.Name{Schema: string(ev.Schema), Table: string(ev.Table)}
	captured := v.captured[name]
	if captured == nil {
		v.maps[ev.TableID] = &described{name: name}
		return
	}
	raw := e.RawData[replication.EventHeaderSize+8:]
	d := v.known[name]
	if d == nil || !bytes.Equal(d.raw, raw) {
		d = v.ofLog(ev, v.charsets, captured.sourceTypes())
		d.captured, d.raw = captured, bytes.Clone(raw)
		v.known[name] = d
	}
	v.maps[ev.TableID] = d
}

func (v *events) rowsEvent(e *replication.BinlogEvent, ev *replication.RowsEvent) (step, error) {
	d := v.maps[ev.TableID]
	if d == nil {
		return step{}, fault.New(fault.MYDecode, v.where, fmt.Sprintf("rows of table %d, which was not described", ev.TableID))
	}
	st := step{kind: stepRows, table: d, xa: v.xa}
	if d.captured == nil {
		return st, nil
	}
	incomplete := func(why string) (step, error) {
		st.err = fault.New(fault.MYImage, v.where, fmt.Sprintf("table %s: %s", d.name, why), "table", d.name.String(), "job", v.cfg.Job)
		return st, nil
	}
	v.rows++
	switch e.Header.EventType {
	case replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2, replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1:
		st.change = inserted
	case replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2, replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1:
		st.change = updated
	case replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2, replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		st.change = deleted
	default: // PARTIAL_UPDATE_ROWS: a document's differences
		return incomplete(fmt.Sprintf("an event of type %s", e.Header.EventType))
	}
	if d.err == nil && (!whole(ev.ColumnBitmap1, len(d.widths)) || (st.change == updated && !whole(ev.ColumnBitmap2, len(d.widths)))) {
		return incomplete("a row without some columns")
	}
	var err error
	st.image, err = image(e, st.change == updated)
	if err != nil {
		return step{}, fault.Wrap(err, fault.MYDecode, v.where, fmt.Sprintf("table %s: %v", d.name, err))
	}
	return st, nil
}

// whole reports whether the first n bits are set.
func whole(bits []byte, n int) bool {
	for i := range n {
		if bits[i>>3]&(1<<(i&7)) == 0 {
			return false
		}
	}
	return true
}

// image is the rows of a rows event: what is behind its header.
func image(e *replication.BinlogEvent, update bool) ([]byte, error) {
	data := e.RawData[replication.EventHeaderSize:]
	pos := 8 // the table's number, and flags
	switch e.Header.EventType {
	case replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2:
		pos += int(binary.LittleEndian.Uint16(data[pos:])) // the parser has been here
	default:
	}
	columns, _, n := mysql.LengthEncodedInt(data[pos:])
	pos += n + int(columns+7)/8
	if update {
		pos += int(columns+7) / 8
	}
	if pos > len(data) {
		return nil, fmt.Errorf("a header of %d bytes in an event of %d", pos, len(data))
	}
	switch e.Header.EventType {
	case replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		return mysql.DecompressMariadbData(data[pos:])
	default:
		return data[pos:], nil
	}
}
