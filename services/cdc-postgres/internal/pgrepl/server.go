package pgrepl

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
)

// MinVersion is the oldest server that can be read.
const MinVersion = 140000

// Server is what a SQL session says about the server, for the checks at the start.
type Server struct {
	Version     int
	System      System
	DatabaseOID uint32
	InRecovery  bool
	WALLevel    string
	// Replication says that the user may start replication.
	Replication bool
	Superuser   bool
	// CanCreate says that the user may create publications in the database.
	CanCreate             bool
	SlotsUsed, SlotsLimit int
	SendersUsed, Senders  int
}

// Server asks the server about itself.
func (t *Target) Server(ctx context.Context, conn *pgx.Conn) (Server, error) {
	var s Server
	var system, timeline string
	err := conn.QueryRow(ctx, `
SELECT current_setting('server_version_num')::int,
       (SELECT system_identifier::text FROM pg_control_system()),
       (SELECT timeline_id::text FROM pg_control_checkpoint()),
       (SELECT oid FROM pg_database WHERE datname = current_database()),
       pg_is_in_recovery(),
       current_setting('wal_level'),
       r.rolreplication OR r.rolsuper OR EXISTS (
         SELECT FROM pg_roles g WHERE g.rolname = 'rds_replication' AND pg_has_role(g.oid, 'MEMBER')), -- Amazon RDS grants the right so
       r.rolsuper,
       has_database_privilege(current_database(), 'CREATE'),
       (SELECT count(*) FROM pg_replication_slots), current_setting('max_replication_slots')::int,
       (SELECT count(*) FROM pg_stat_replication), current_setting('max_wal_senders')::int
FROM pg_roles r WHERE r.rolname = current_user`).Scan(
		&s.Version, &system, &timeline, &s.DatabaseOID, &s.InRecovery, &s.WALLevel, &s.Replication, &s.Superuser,
		&s.CanCreate, &s.SlotsUsed, &s.SlotsLimit, &s.SendersUsed, &s.Senders)
	if err != nil {
		return Server{}, t.Fault(err)
	}
	tl, err := strconv.ParseUint(timeline, 10, 32)
	if err != nil {
		return Server{}, t.Fault(err)
	}
	s.System = System{Identifier: system, Timeline: uint32(tl)}
	return s, nil
}

// Check reports the first thing that keeps a source from reading this server.
func (t *Target) Check(s Server) error {
	bad := func(code fault.Code, why string, args ...string) error {
		args = append([]string{"where", t.where, "role", t.config.User, "database", t.config.Database}, args...)
		return fault.New(code, t.where, why, args...)
	}
	switch {
	case s.Version < MinVersion:
		return bad(fault.PGTooOld, "server_version_num is "+strconv.Itoa(s.Version), "want", strconv.Itoa(MinVersion/10000))
	case s.InRecovery:
		return bad(fault.PGStandby, "pg_is_in_recovery() is true")
	case s.WALLevel != "logical":
		return bad(fault.PGWALLevel, "wal_level is "+s.WALLevel)
	case !s.Replication:
		return bad(fault.PGNoReplicationRight, "role "+t.config.User+" has no REPLICATION attribute")
	}
	return nil
}

// CheckRoom reports that no slot or no walsender is free, before one is needed.
func (t *Target) CheckRoom(s Server) error {
	switch {
	case s.SlotsUsed >= s.SlotsLimit:
		return fault.New(fault.PGNoFreeSlot, t.where, strconv.Itoa(s.SlotsUsed)+" of max_replication_slots = "+strconv.Itoa(s.SlotsLimit)+" are in use")
	case s.SendersUsed >= s.Senders:
		return fault.New(fault.PGNoFreeWalsender, t.where, strconv.Itoa(s.SendersUsed)+" of max_wal_senders = "+strconv.Itoa(s.Senders)+" are in use")
	}
	return nil
}

// Head is the server's own end of log at one moment.
type Head struct {
	LSN position.LSN
	// Flushed is up to where it is safe: walsenders send nothing behind it, and no commit behind it was answered.
	Flushed position.LSN
	At      time.Time
	// Slot is the slot as it was then; ok says that it is there.
	Slot   Slot
	SlotOK bool
	// KeepLimit is max_slot_wal_keep_size in bytes, 0 without a limit; Room is how much may be written before the slot is lost
	// by it, nil when the server does not say.
	KeepLimit int64
	Room      *int64
}

// End is the end of the log written so far.
func (t *Target) End(ctx context.Context, conn *pgx.Conn) (position.LSN, error) {
	var lsn string
	if err := conn.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text").Scan(&lsn); err != nil {
		return 0, t.Fault(err)
	}
	return position.ParseLSN(lsn)
}

const roomQuery = `
SELECT greatest(setting::bigint, 0) * 1048576,
       (SELECT safe_wal_size FROM pg_replication_slots WHERE slot_name = $1)
FROM pg_settings WHERE name = 'max_slot_wal_keep_size'`

// Head observes the end of the log and the slot.
func (t *Target) Head(ctx context.Context, conn *pgx.Conn, slot string) (Head, error) {
	var h Head
	var lsn, flushed string
	var one pgx.Batch // all in one round trip
	one.Queue("SELECT pg_current_wal_insert_lsn()::text, pg_current_wal_flush_lsn()::text, clock_timestamp()").QueryRow(func(row pgx.Row) error {
		return row.Scan(&lsn, &flushed, &h.At)
	})
	one.Queue(slotQuery+" WHERE slot_name = $1", slot).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanSlot)
		if len(found) > 0 {
			h.Slot, h.SlotOK = found[0], true
		}
		return err
	})
	one.Queue(roomQuery, slot).QueryRow(func(row pgx.Row) error { return row.Scan(&h.KeepLimit, &h.Room) })
	if err := conn.SendBatch(ctx, &one).Close(); err != nil {
		return Head{}, t.Fault(err)
	}
	var err1, err2 error
	h.LSN, err1 = position.ParseLSN(lsn)
	h.Flushed, err2 = position.ParseLSN(flushed)
	if err := errors.Join(err1, err2); err != nil {
		return Head{}, t.Fault(err)
	}
	return h, nil
}

// Heartbeat writes a message into the log that belongs to no table, so that the log moves on. It is not part of any
// transaction.
func (t *Target) Heartbeat(ctx context.Context, conn *pgx.Conn) (position.LSN, error) {
	var lsn string
	if err := conn.QueryRow(ctx, "SELECT pg_logical_emit_message(false, 'weir', '')::text").Scan(&lsn); err != nil {
		return 0, t.Fault(err)
	}
	return position.ParseLSN(lsn)
}
