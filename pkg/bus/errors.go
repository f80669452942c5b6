package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir.dev/weir/pkg/fault"
)

// What can go wrong on the bus. Each carries its fault class; test with errors.Is.
var (
	// ErrConflict: the compare-and-swap lost (10071), or another write to the subject was in flight on a replicated
	// stream (10164). Nothing was stored. Read again and decide again.
	ErrConflict = fault.Mark(fault.Transient, errors.New("bus: another write came first"))
	// ErrFull: the stream or the subject has no room (10077), the server's ingest queue is full (10167), or a cluster has
	// no servers for the replicas (10005). Nothing was stored. Back off; never let a later message overtake the refused one.
	ErrFull = fault.Mark(fault.Transient, errors.New("bus: no room"))
	// ErrStreamGone: the data stream of this attempt, or the consumer on it, no longer exists, came back empty, or went
	// back in its sequence. That is loss, not proof of being fenced: read the head record. Retrying here cannot help.
	ErrStreamGone = fault.Mark(fault.Bug, errors.New("bus: data stream gone"))
	// ErrStalled: the server has been silent for several heartbeats or the connection was replaced while messages were
	// under way. Whether anything is lost is not known; the receiver stays usable.
	ErrStalled = fault.Mark(fault.Transient, errors.New("bus: no heartbeat from the server"))
	// ErrUnknown: no answer in time. The write may or may not have been stored, also later: a write that timed out has
	// been seen to commit when a lost quorum returned. Read back and compare the owner; never repeat blindly.
	ErrUnknown = fault.Mark(fault.Transient, errors.New("bus: result unknown"))
	// ErrDisconnected: there is no connection at the moment and nothing was sent.
	ErrDisconnected = fault.Mark(fault.Transient, errors.New("bus: not connected, nothing sent"))
	// ErrNotFound: no such key, subject, stream or bucket.
	ErrNotFound = errors.New("bus: not found")
	// ErrDenied: the NATS user may not use the subject.
	ErrDenied = fault.Mark(fault.Permanent, errors.New("bus: permission denied"))
	// ErrTooBig: the message exceeds max_payload of the server or the limit of the stream. Nothing was sent.
	ErrTooBig = fault.Mark(fault.Permanent, errors.New("bus: message too big"))
	// ErrNoResponders: nobody listens on the subject. For a stream's subject: no such stream, or no leader just now; for
	// JetStream itself: the servers of a cluster have not agreed on a leader (10008).
	ErrNoResponders = fault.Mark(fault.Transient, errors.New("bus: nobody listens"))
	// ErrShape: a stream or bucket of that name exists with a configuration that cannot be changed into the wanted one.
	ErrShape = fault.Mark(fault.Permanent, errors.New("bus: existing stream has another shape"))
	// ErrNoJetStream: the server or the account has no JetStream.
	ErrNoJetStream = fault.Mark(fault.Permanent, errors.New("bus: JetStream is not enabled"))
	// ErrDamaged: bytes that were read do not have the promised size or digest.
	ErrDamaged = fault.Mark(fault.Bug, errors.New("bus: content does not match its digest"))
	// ErrClosed: the connection, publisher, receiver or watch was closed by its owner.
	ErrClosed = errors.New("bus: closed")
)

// Error numbers of the JetStream API that decide which of our errors a refusal is; see errors.json of nats-server.
const (
	codeAccountResources = 10002
	codeIncomplete       = 10004
	codeNoPeers          = 10005
	codeNotAssigned      = 10007
	codeNotAvailable     = 10008
	codeNotLeader        = 10009
	codeConsumerNotFound = 10014
	codeInsufficient     = 10023
	codeMemoryExceeded   = 10028
	codeMessageNotFound  = 10037
	codeNotForAccount    = 10039
	codeStorageExceeded  = 10047
	codeInvalidConfig    = 10052
	codeMessageTooBig    = 10054
	codeStreamNameInUse  = 10058
	codeStreamNotFound   = 10059
	codeWrongLastSeq     = 10071
	codeNotEnabled       = 10076
	codeStoreFailed      = 10077
	codeHeaderTooBig     = 10097
	codeStreamOffline    = 10118
	codeConsumerOffline  = 10119
	codeNoSuchConsumer   = 10149
	codeWriteInFlight    = 10164
	codeTooManyRequests  = 10167
)

// foreign turns an error of the client library or the server into ours, once, at the edge of the package. The text of
// the original is kept; its type is not for callers.
func foreign(err error) error {
	if err == nil || isOurs(err) {
		return err
	}
	kind := kindOf(err)
	if kind == nil {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// isOurs spares what has been translated already.
func isOurs(err error) bool {
	for _, ours := range []error{ErrUnknown, ErrDisconnected, ErrClosed} {
		if errors.Is(err, ours) {
			return true
		}
	}
	return false
}

func kindOf(err error) error {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return kindOfCode(int(api.ErrorCode))
	}
	switch {
	case errors.Is(err, context.Canceled):
		// The caller gave up; whether a write was stored is as open as after a time-out.
		return ErrUnknown
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, io.ErrClosedPipe), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), isNetError(err):
		// A write that failed half-way counts as sent.
		return ErrUnknown
	case errors.Is(err, nats.ErrConnectionClosed):
		// A request whose answer went down with its session; what was surely not sent is told apart before.
		return ErrUnknown
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrBadSubscription):
		return ErrDisconnected
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return ErrNoResponders
	case errors.Is(err, nats.ErrMaxPayload):
		return ErrTooBig
	case errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrAuthorization):
		return ErrDenied
	}
	return nil
}

func isNetError(err error) bool {
	_, ok := errors.AsType[*net.OpError](err)
	return ok
}

func kindOfCode(code int) error {
	switch code {
	case codeWrongLastSeq, codeWriteInFlight:
		return ErrConflict
	case codeStoreFailed, codeTooManyRequests, codeStorageExceeded, codeMemoryExceeded, codeInsufficient,
		codeAccountResources, codeNoPeers:
		return ErrFull
	case codeMessageTooBig, codeHeaderTooBig:
		return ErrTooBig
	case codeStreamNotFound, codeConsumerNotFound, codeMessageNotFound, codeNoSuchConsumer:
		return ErrNotFound
	case codeStreamNameInUse, codeInvalidConfig:
		return ErrShape
	case codeNotEnabled, codeNotForAccount:
		return ErrNoJetStream
	case codeStreamOffline, codeConsumerOffline, codeIncomplete, codeNotAssigned, codeNotAvailable, codeNotLeader:
		return ErrNoResponders
	}
	return nil
}

// gone turns "not there" into the loss of a data stream: a memory stream vanishes with its server, and a deleted one
// is how an attempt is ended.
func gone(err error) error {
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoResponders) {
		return fmt.Errorf("%w: %w", ErrStreamGone, err)
	}
	return err
}
