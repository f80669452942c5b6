package pgrepl

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Probed is what a replication connection says before it reads anything.
type Probed struct {
	System System
	// SenderTimeout is wal_sender_timeout as it holds for the connection.
	SenderTimeout string
}

// SenderTimeout is the wal_sender_timeout that replication connections ask for.
const SenderTimeout = senderTimeout

// Probe opens a replication connection as a reader does, asks who answers, and closes it. It uses no slot.
func (t *Target) Probe(ctx context.Context) (p Probed, err error) {
	hijacked, r, err := t.replication(ctx)
	if err != nil {
		return Probed{}, err
	}
	s := &Stream{target: t, conn: hijacked.Conn, r: r}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() {
			err = errors.Join(ctx.Err(), err)
		}
		err = t.Fault(errors.Join(err, s.Close()))
	}()
	if p.System, err = s.identify(); err != nil {
		return Probed{}, err
	}
	shown, err := s.query("SHOW wal_sender_timeout")
	if err == nil && (len(shown) != 1 || len(shown[0]) != 1) {
		err = errors.New("show wal_sender_timeout: unexpected answer")
	}
	if err != nil {
		return Probed{}, err
	}
	p.SenderTimeout = shown[0][0]
	return p, nil
}

// identify asks who answers.
func (s *Stream) identify() (System, error) {
	rows, err := s.query("IDENTIFY_SYSTEM")
	if err != nil {
		return System{}, err
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return System{}, errors.New("identify system: unexpected answer")
	}
	timeline, err := strconv.ParseUint(rows[0][1], 10, 32)
	if err != nil {
		return System{}, fmt.Errorf("identify system: timeline: %w", err)
	}
	return System{Identifier: rows[0][0], Timeline: uint32(timeline)}, nil
}
