package pgrepl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
)

// The SQLSTATEs that have a meaning of their own here.
const (
	stateInvalidAuthorization  = "28000"
	stateInvalidPassword       = "28P01"
	stateNoDatabase            = "3D000"
	stateTooManyConnections    = "53300"
	stateConfigurationLimit    = "53400"
	stateProgramLimit          = "54000"
	stateNotInPrerequisite     = "55000"
	stateObjectInUse           = "55006"
	stateLockNotAvailable      = "55P03"
	stateUndefinedObject       = "42704"
	stateDuplicateObject       = "42710"
	stateInsufficientPrivilege = "42501"
	stateUndefinedFile         = "58P01"
	stateAdminShutdown         = "57P01"
	stateCrashShutdown         = "57P02"
	stateCannotConnectNow      = "57P03"
	stateIdleSession           = "57P05"
)

// state is the SQLSTATE of err, empty when the server did not answer.
func state(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// ShuttingDown reports whether the server ended or refused a session because it goes down.
func ShuttingDown(err error) bool {
	switch state(err) {
	case stateAdminShutdown, stateCrashShutdown, stateCannotConnectNow, stateIdleSession:
		return true
	}
	return false
}

// TooBig reports whether the server failed at its own limit: the buffer of a message, and any one allocation, ends at 1 GiB.
// Values grow on their way out, bytea in text form to twice its size.
func TooBig(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == stateProgramLimit || strings.HasPrefix(pg.Message, "invalid memory alloc request size"))
}

// why tells what happened without anything secret: message and SQLSTATE of the server, or the network's own words.
func why(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Sprintf("the server says: %s (SQLSTATE %s)", pg.Message, pg.Code)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Error()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed"
	}
	return fmt.Sprintf("unexpected failure of the connection (%T)", err)
}

// cause keeps the part of err that holds no connection string, for errors.Is and errors.As.
func cause(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

func (t *Target) fault(err error, code fault.Code, args ...string) error {
	args = append([]string{"where", t.where, "role", t.config.User, "database", t.config.Database, "job", t.session.Job}, args...)
	e := fault.New(code, t.where, why(err), args...)
	e.Err = cause(err)
	return e
}

// connectFault translates an error of opening a session.
func (t *Target) connectFault(err error) error {
	switch state(err) {
	case stateInvalidPassword:
		return t.fault(err, fault.PGWrongPassword)
	case stateInvalidAuthorization:
		// One SQLSTATE for a role that does not exist and for an address that pg_hba.conf does not let in.
		if strings.Contains(why(err), "pg_hba.conf") {
			return t.fault(err, fault.PGCannotConnect)
		}
		return t.fault(err, fault.PGWrongPassword)
	case stateNoDatabase:
		return t.fault(err, fault.PGNoDatabase)
	case stateInsufficientPrivilege:
		return t.fault(err, fault.PGNoReplicationRight)
	case stateTooManyConnections:
		if strings.Contains(why(err), "max_wal_senders") {
			return t.fault(err, fault.PGNoFreeWalsender)
		}
	}
	return t.fault(err, fault.PGCannotConnect)
}

// Fault translates an error of a session that was open. An error that is a fault already stays as it is.
func (t *Target) Fault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	switch state(err) {
	case stateInsufficientPrivilege:
		return t.fault(err, fault.PGNoReplicationRight)
	case stateLockNotAvailable:
		return t.fault(err, fault.PGCannotConnect)
	case "":
		return t.fault(err, fault.PGDisconnected)
	}
	if ShuttingDown(err) {
		return t.fault(err, fault.PGDisconnected)
	}
	return fmt.Errorf("%s: %s: %w", t.where, why(err), fault.Bug)
}

// unpublishedFault: the server decodes each change with the catalog of its own moment, so a publication that is made later
// does not mend what the slot holds.
func (t *Target) unpublishedFault(err error, slot string) error {
	e := fault.New(fault.PGPublicationMissing, t.where, why(err)+"; slot "+slot+" holds changes of a time when the publication did not exist")
	e.Err = cause(err)
	e.Remedy = "These changes cannot be read. Make the publication first and the slot after it: SELECT pg_drop_replication_slot('" +
		slot + "'); SELECT pg_create_logical_replication_slot('" + slot + "', 'pgoutput'); then submit the job under a new name " +
		"and let it copy the tables again."
	return e
}

// rowFault: the server cannot send a row of the log. It does not say which; its context names the place in the log.
func (t *Target) rowFault(err error) error {
	e := fault.New(fault.SrcTooBig, t.where, why(err), "where", t.where)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Where != "" {
		e.Why += "; " + pg.Where
	}
	e.Err = cause(err)
	return e
}

// slotFault translates an error of creating, starting or dropping a slot.
func (t *Target) slotFault(err error, slot string) error {
	switch state(err) {
	case stateConfigurationLimit:
		return t.fault(err, fault.PGNoFreeSlot)
	case stateObjectInUse:
		return t.fault(err, fault.PGSlotActive, "slot", slot)
	case stateUndefinedObject:
		return t.fault(err, fault.PGSlotMissing, "slot", slot)
	case stateNotInPrerequisite:
		if strings.Contains(why(err), "wal_level") {
			return t.fault(err, fault.PGWALLevel)
		}
		return t.fault(err, fault.PGSlotLost, "slot", slot)
	case stateUndefinedFile:
		return t.fault(err, fault.PGSlotLost, "slot", slot)
	}
	return t.Fault(err)
}
