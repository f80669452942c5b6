package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

const (
	// heartbeat is how often the server says on an idle connection where it is.
	heartbeat = time.Second
	// ignorable is the flag of events that who does not know them may leave out.
	ignorable = 0x80
)

// Stream is a replication connection. It belongs to one goroutine, but for Close.
type Stream struct {
	target *Target
	conn   *client.Conn
	line   *line
	uuid   string
	parser *replication.BinlogParser
	stop   func() bool
	at     position.BinlogPos // behind the last event
	summed bool               // a checksum of four bytes stands behind every event
	inner  []*replication.BinlogEvent
}

// Dump asks for the log from a point on. id is the server id of a replica that nobody else may have.
func (t *Target) Dump(ctx context.Context, id uint32, from *core.Point) (*Stream, error) {
	conn, l, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	l.opened(conn.GetConnectionID())
	s := &Stream{target: t, conn: conn, line: l, parser: replication.NewBinlogParser(), at: from.Binlog}
	s.stop = context.AfterFunc(ctx, func() { _ = l.Close() })
	s.parser.SetVerifyChecksum(true)
	// Rows are cut and decoded where they are wanted.
	s.parser.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
		_, err := e.DecodeHeader(data)
		return err
	})
	if err := s.begin(id, from); err != nil {
		s.Close()
		return nil, l.fault(err)
	}
	return s, nil
}

// Close ends the connection.
func (s *Stream) Close() {
	s.stop()
	_ = s.line.Close()
}

func (s *Stream) begin(id uint32, from *core.Point) error {
	sets := []string{
		patient,
		"SET @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'",
		fmt.Sprintf("SET @master_heartbeat_period = %d, @source_heartbeat_period = %[1]d", heartbeat.Nanoseconds()),
	}
	if from.Family == position.MariaDBGTID {
		s.parser.SetFlavor(mysql.MariaDBFlavor)
		sets = append(sets, "SET @mariadb_slave_capability = 4, @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0",
			"SET @slave_connect_state = '"+from.Maria.String()+"'")
	}
	for _, sql := range sets {
		if _, err := s.conn.Execute(sql); err != nil {
			return err
		}
	}
	if from.Family != position.MariaDBGTID {
		r, err := s.conn.Execute("SELECT @@GLOBAL.server_uuid")
		if err != nil {
			return err
		}
		if s.uuid, err = r.GetString(0, 0); err != nil {
			return err
		}
	}
	s.conn.ResetSequence()
	if from.Family == position.MySQLGTID {
		set, err := mysql.ParseMysqlGTIDSet(from.GTIDs.String())
		if err != nil {
			return err
		}
		data := set.Encode()
		p := append(make([]byte, 4), mysql.COM_BINLOG_DUMP_GTID, 0, 0)
		p = binary.LittleEndian.AppendUint32(p, id)
		p = binary.LittleEndian.AppendUint32(p, 0) // no file
		p = binary.LittleEndian.AppendUint64(p, 4)
		p = binary.LittleEndian.AppendUint32(p, uint32(len(data)))
		return s.conn.WritePacket(append(p, data...))
	}
	file, pos := "", uint32(4)
	if from.Family == position.MySQLBinlog {
		file, pos = from.Binlog.File(), uint32(from.Binlog.Pos)
	}
	p := append(make([]byte, 4), mysql.COM_BINLOG_DUMP)
	p = binary.LittleEndian.AppendUint32(p, pos)
	p = binary.LittleEndian.AppendUint16(p, 0)
	p = binary.LittleEndian.AppendUint32(p, id)
	return s.conn.WritePacket(append(p, file...))
}

// UUID is the server's own; empty for MariaDB.
func (s *Stream) UUID() string { return s.uuid }

// At is where the log is behind the last event.
func (s *Stream) At() position.BinlogPos { return s.at }

// Next waits for the next event. Those in a compressed transaction come one by one.
func (s *Stream) Next() (*replication.BinlogEvent, error) {
	if len(s.inner) > 0 {
		e := s.inner[0]
		s.inner = s.inner[1:]
		return e, nil
	}
	data, err := s.conn.ReadPacket()
	if err != nil {
		return nil, s.line.fault(err)
	}
	switch data[0] {
	case mysql.OK_HEADER:
	case mysql.ERR_HEADER:
		return nil, s.target.Fault(s.conn.HandleErrorPacket(data))
	default: // the server has ended the dump: it stops, or another replica has the id
		return nil, fault.New(fault.MYDisconnected, s.target.where, "the server ended the log", "where", s.target.where)
	}
	e, err := s.parser.Parse(data[1:])
	if err != nil {
		return nil, s.undecodable(err)
	}
	if err := s.locate(e); err != nil {
		return nil, s.undecodable(err)
	}
	if f, ok := e.Event.(*replication.FormatDescriptionEvent); ok {
		s.summed = f.ChecksumAlgorithm == replication.BINLOG_CHECKSUM_ALG_CRC32
	} else if s.summed {
		e.RawData = e.RawData[:len(e.RawData)-replication.BinlogChecksumLength] // the parser has read as far
	}
	if p, ok := e.Event.(*replication.TransactionPayloadEvent); ok {
		s.inner = p.Events
		return s.Next()
	}
	return e, s.known(e)
}

// locate follows where in the server's files the log is. Positions on the wire have 32 bits, files may have more.
func (s *Stream) locate(e *replication.BinlogEvent) error {
	if r, ok := e.Event.(*replication.RotateEvent); ok {
		at, err := position.NewBinlogPos(string(r.NextLogName), r.Position)
		if err != nil {
			return err
		}
		s.at = at
		return nil
	}
	low := uint64(e.Header.LogPos)
	if low == 0 {
		return nil
	}
	pos := s.at.Pos&^(1<<32-1) | low
	if pos < s.at.Pos && e.Header.EventType != replication.HEARTBEAT_EVENT {
		pos += 1 << 32
	}
	s.at.Pos = max(pos, s.at.Pos)
	return nil
}

// known refuses what cannot be left out.
func (s *Stream) known(e *replication.BinlogEvent) error {
	if _, generic := e.Event.(*replication.GenericEvent); !generic {
		return nil
	}
	switch e.Header.EventType {
	case replication.INCIDENT_EVENT:
		return fault.New(fault.MYIncident, s.target.where, "at "+s.at.String())
	case replication.XA_PREPARE_LOG_EVENT, replication.STOP_EVENT, replication.USER_VAR_EVENT, replication.RAND_EVENT, replication.IGNORABLE_EVENT,
		replication.TRANSACTION_CONTEXT_EVENT, replication.VIEW_CHANGE_EVENT, replication.MARIADB_START_ENCRYPTION_EVENT:
		return nil
	default:
	}
	if e.Header.Flags&ignorable != 0 {
		return nil
	}
	return s.undecodable(fmt.Errorf("an event of the unknown type %d", e.Header.EventType))
}

func (s *Stream) undecodable(err error) error {
	if errors.Is(err, fault.Bug) {
		return err
	}
	return fault.Wrap(err, fault.MYDecode, s.target.where, fmt.Sprintf("at %s: %v", s.at, err))
}
