package pgrepl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// plugin is the only output plugin this source reads.
const plugin = "pgoutput"

// failoverVersion is the first server version whose slots survive a failover.
const failoverVersion = 170000

// Slot is a replication slot as the server sees it.
type Slot struct {
	Name      string
	Plugin    string
	Database  string
	Temporary bool
	// ActivePID is the backend that reads the slot, 0 when nobody does.
	ActivePID int32
	// Confirmed is the position before which the server has been told to forget.
	Confirmed position.LSN
	// WALStatus is reserved, extended, unreserved or lost.
	WALStatus string
	// Retained is the log kept for the slot, in bytes.
	Retained int64
	// Failover says that the slot survives a failover; false before version 17.
	Failover bool
}

const slotQuery = `
SELECT slot_name, coalesce(plugin, ''), coalesce(database, ''), temporary, coalesce(active_pid, 0),
       coalesce(confirmed_flush_lsn, '0/0')::text, coalesce(wal_status, ''),
       coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint,
       coalesce((to_jsonb(s) ->> 'failover')::boolean, false)
FROM pg_replication_slots s`

func scanSlot(row pgx.CollectableRow) (Slot, error) {
	var s Slot
	var confirmed string
	err := row.Scan(&s.Name, &s.Plugin, &s.Database, &s.Temporary, &s.ActivePID, &confirmed, &s.WALStatus, &s.Retained, &s.Failover)
	if err != nil {
		return Slot{}, err
	}
	s.Confirmed, err = position.ParseLSN(confirmed)
	return s, err
}

// Slot finds a slot by name; ok is false when there is none.
func (t *Target) Slot(ctx context.Context, conn *pgx.Conn, name string) (s Slot, ok bool, err error) {
	rows, err := conn.Query(ctx, slotQuery+" WHERE slot_name = $1", name)
	if err != nil {
		return Slot{}, false, t.Fault(err)
	}
	s, err = pgx.CollectExactlyOneRow(rows, scanSlot)
	if errors.Is(err, pgx.ErrNoRows) {
		return Slot{}, false, nil
	}
	return s, err == nil, t.Fault(err)
}

// workTimeout bounds the question whether a process is at work.
const workTimeout = 3 * time.Second

// AtWork reports whether a process of the server computes or reads, rather than waits for its client or for something to do.
// No answer is no.
func (t *Target) AtWork(ctx context.Context, conn *pgx.Conn, pid uint32) bool {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	var working bool
	err := conn.QueryRow(ctx, "SELECT coalesce(wait_event_type, '') NOT IN ('Activity', 'Client') FROM pg_stat_activity WHERE pid = $1",
		int32(pid)).Scan(&working)
	return err == nil && working
}

// Slots lists the slots of this database.
func (t *Target) Slots(ctx context.Context, conn *pgx.Conn) ([]Slot, error) {
	rows, err := conn.Query(ctx, slotQuery+" WHERE database = current_database() ORDER BY slot_name")
	if err != nil {
		return nil, t.Fault(err)
	}
	slots, err := pgx.CollectRows(rows, scanSlot)
	return slots, t.Fault(err)
}

// CheckUsable reports why a slot cannot be read by this source.
func (t *Target) CheckUsable(s Slot) error {
	switch {
	case s.Plugin != plugin:
		return fault.New(fault.PGSlotForeign, t.where, fmt.Sprintf("slot %q has the plugin %q, not %s", s.Name, s.Plugin, plugin), "slot", s.Name, "job", t.session.Job)
	case s.Database != t.config.Database:
		return fault.New(fault.PGSlotForeign, t.where, fmt.Sprintf("slot %q belongs to the database %q", s.Name, s.Database), "slot", s.Name, "job", t.session.Job)
	case s.Temporary:
		return fault.New(fault.PGSlotForeign, t.where, fmt.Sprintf("slot %q is temporary", s.Name), "slot", s.Name, "job", t.session.Job)
	case s.Confirmed == 0:
		return fault.New(fault.PGSlotForeign, t.where, fmt.Sprintf("slot %q is still being made", s.Name), "slot", s.Name, "job", t.session.Job)
	case s.WALStatus == "lost":
		return fault.New(fault.PGSlotLost, t.where, fmt.Sprintf("slot %q: wal_status is lost", s.Name), "slot", s.Name, "job", t.session.Job)
	}
	return nil
}

// CreateSlot makes a slot, which survives a failover where the server can do that, and returns its consistent point.
// It waits for every transaction that is in progress; waiting is called now and then with what it waits for.
func (t *Target) CreateSlot(ctx context.Context, conn *pgx.Conn, name string, version int, waiting func(string)) (position.LSN, error) {
	sql := "SELECT lsn::text FROM pg_create_logical_replication_slot($1, '" + plugin + "', false, false)"
	if version >= failoverVersion {
		sql = "SELECT lsn::text FROM pg_create_logical_replication_slot($1, '" + plugin + "', false, false, true)"
	}
	done := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		t.tellWaiting(ctx, done, waiting)
	}()
	var lsn string
	err := conn.QueryRow(ctx, sql, name).Scan(&lsn)
	close(done)
	<-told
	if err != nil {
		return 0, t.slotFault(err, name)
	}
	return position.ParseLSN(lsn)
}

// CopySlot makes a slot that keeps the log from where another one does, whether or not that one is being read.
func (t *Target) CopySlot(ctx context.Context, conn *pgx.Conn, from, to string) error {
	_, err := conn.Exec(ctx, "SELECT pg_copy_logical_replication_slot($1, $2, false, '"+plugin+"')", from, to)
	if err != nil {
		return t.slotFault(err, from)
	}
	return nil
}

// tellWaiting says every few seconds which transaction keeps a slot from being made.
func (t *Target) tellWaiting(ctx context.Context, done <-chan struct{}, waiting func(string)) {
	const patience = 3 * time.Second
	timer := time.NewTicker(patience)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
			if text, err := t.oldestTransaction(ctx); err == nil && text != "" {
				waiting(text)
			}
		}
	}
}

func (t *Target) oldestTransaction(ctx context.Context) (string, error) {
	conn, err := t.SQL(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var n, pid int
	var app string
	var age float64
	err = conn.QueryRow(ctx, `
SELECT count(*) OVER (), pid, coalesce(application_name, ''), extract(epoch FROM clock_timestamp() - xact_start)
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1`).Scan(&n, &pid, &app, &age)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d transactions in progress, the oldest since %.0f s in backend %d (%s)", n, age, pid, app), nil
}

// DropSlot removes a slot if it is there. Backends of this life with a lower fence, or of the same one when own is set,
// are ended first; a slot that somebody else reads is left alone and reported.
func (t *Target) DropSlot(ctx context.Context, conn *pgx.Conn, name string, own bool) error {
	err := t.whileActive(ctx, conn, name, own, func() error {
		_, err := conn.Exec(ctx, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", name)
		return err
	})
	if fault.CodeOf(err) == fault.PGSlotMissing {
		return nil // dropped between the query and the call
	}
	return err
}

// StartFree starts a stream as soon as nobody else reads the slot, see [Target.DropSlot].
func (t *Target) StartFree(ctx context.Context, conn *pgx.Conn, opts StartOptions) (*Stream, error) {
	var s *Stream
	err := t.whileActive(ctx, conn, opts.Slot, false, func() error {
		var err error
		s, err = t.Start(ctx, opts)
		return err
	})
	return s, err
}

// activePatience is how long a slot in other hands is waited for. The walsender of a reader that was stopped ends after
// senderTimeout.
const activePatience = 12 * time.Second

// whileActive repeats do for as long as it finds the slot active, and ends the sessions that may be ended.
func (t *Target) whileActive(ctx context.Context, conn *pgx.Conn, slot string, own bool, do func() error) error {
	deadline := time.Now().Add(activePatience)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if state(err) != stateObjectInUse && fault.CodeOf(err) != fault.PGSlotActive {
			return t.slotFaultOf(err, slot)
		}
		holder, err := t.evict(ctx, conn, slot, own)
		if err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fault.New(fault.PGSlotActive, t.where, fmt.Sprintf("slot %q is read by %s", slot, holder), "slot", slot)
		}
		select {
		case <-ctx.Done():
			return t.Fault(ctx.Err())
		case <-time.After(pause):
		}
	}
}

func (t *Target) slotFaultOf(err error, slot string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return t.slotFault(err, slot)
}

// evict ends the reader of a slot if it is an older one of this life and tells who it is.
func (t *Target) evict(ctx context.Context, conn *pgx.Conn, slot string, own bool) (holder string, err error) {
	var pid int32
	var app string
	err = conn.QueryRow(ctx, `
SELECT s.active_pid, coalesce(a.application_name, '')
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
WHERE s.slot_name = $1 AND s.active_pid IS NOT NULL`, slot).Scan(&pid, &app)
	if errors.Is(err, pgx.ErrNoRows) {
		return "nobody any more", nil
	}
	if err != nil {
		return "", t.Fault(err)
	}
	holder = fmt.Sprintf("backend %d (application_name %q)", pid, app)
	mine := t.session.Supersedes(app) || (own && t.sameAttempt(app))
	if !mine {
		return holder, nil
	}
	// The name is asked again in the same statement: the process id may have a new owner by now.
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2", pid, app); err != nil {
		return "", t.Fault(err)
	}
	return holder, nil
}

func (t *Target) sameAttempt(app string) bool {
	o, ok := core.ParseSession(app)
	return ok && o.Life == t.session.Life && o.Fence == t.session.Fence
}
