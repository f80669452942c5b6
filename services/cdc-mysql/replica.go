package cdcmysql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
)

const (
	// replicaTries bounds the search for a server id that nobody has, replicaWait how long that of an attempt before is waited for.
	replicaTries = 16
	replicaWait  = 30 * time.Second
	replicaPause = 200 * time.Millisecond
)

// chosenID is the server id of one connection of this attempt, when the user gives none. Ids of attempts and connections differ,
// so that a zombie and its successor do not end each other's log in turn.
func (o *opened) chosenID(connection string, try int) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%s/%s/%s/%s/%d", o.cfg.Job, o.cfg.Life, o.cfg.Fence, o.cfg.Subtask, connection, try)
	return h.Sum32() | 1<<31 // people number their servers from below
}

// givenID is the server id that the user gives to the log, or to the copies of this reader.
func (o *opened) givenID(log bool) uint32 {
	if log {
		return uint32(o.source.ServerID)
	}
	return uint32(o.source.ServerID + 1 + o.cfg.Subtask.Index)
}

// replica takes the server id for a connection that reads the log, as long as the returned context lives: to a server, two
// clients with one id are the same one come back, and it ends the first. server tells servers apart. The id of a replica that is not
// Weir's is not taken either.
func (o *opened) replica(ctx context.Context, server, connection string, log bool) (held context.Context, release func(), id uint32, err error) {
	used, err := o.target.Replicas(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	if o.source.ServerID != 0 {
		id = o.givenID(log)
		held, release, err = o.awaitID(ctx, server, id)
		if who, taken := used[id]; taken && err == nil {
			release()
			return nil, nil, id, fault.New(fault.MYServerIDTaken, o.where+".server_id", fmt.Sprintf("server id %d is that of %s", id, who))
		}
		return held, release, id, err
	}
	err = fault.New(fault.MYServerID, o.where, "every server id that was tried is another replica's")
	for try := range replicaTries {
		id = o.chosenID(connection, try)
		if _, taken := used[id]; taken {
			continue
		}
		held, release, err = o.hold(ctx, server, id)
		if _, taken := errors.AsType[*source.HeldError](err); !taken {
			break
		}
	}
	return held, release, id, err
}

func (o *opened) hold(ctx context.Context, server string, id uint32) (context.Context, func(), error) {
	if o.cfg.Hold == nil {
		held, release := context.WithCancel(ctx)
		return held, release, nil
	}
	return o.cfg.Hold(ctx, fmt.Sprintf("server-id/%s/%d", server, id))
}

// awaitID takes an id that cannot be another. It waits for an attempt before this one to give it back.
func (o *opened) awaitID(ctx context.Context, server string, id uint32) (context.Context, func(), error) {
	deadline := time.Now().Add(replicaWait)
	for {
		held, release, err := o.hold(ctx, server, id)
		taken, ok := errors.AsType[*source.HeldError](err)
		switch {
		case !ok:
			return held, release, err
		case taken.By.Job != "" && (taken.By.Life != o.cfg.Life || taken.By.Fence == o.cfg.Fence) || time.Now().After(deadline):
			return nil, nil, fault.New(fault.MYServerIDTaken, o.where+".server_id", fmt.Sprintf(
				"server id %d is in use by job %q, subtask %s", id, taken.By.Job, taken.By.Subtask))
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(replicaPause):
		}
	}
}

// kicked makes of the end of a stream the fault of who has its id now: a given id cannot be changed by itself, so that the two
// would end each other for ever.
func (o *opened) kicked(err error) error {
	if o.source.ServerID == 0 || fault.CodeOf(err) != fault.MYServerID {
		return err
	}
	return fault.Wrap(err, fault.MYServerIDTaken, o.where+".server_id", fmt.Sprintf(
		"another client of the server came with one of the server ids from %d to %d", o.source.ServerID, o.source.ServerID+o.cfg.Readers))
}

// serverName tells servers apart: by what they call themselves, or by how they are reached.
func (o *opened) serverName(s *enumeratorState) string { return cmp.Or(s.UUID, o.target.Address()) }
