package server

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/pkg/fault"
)

// commitPause is the pause between two looks at the commits under way; one lasts about as long.
const commitPause = 2 * time.Millisecond

// commitWait is what people are told of a wait for commits.
const commitWait = "commits that are in the log become visible when what they wait for has come: a replica that acknowledges them, a lock, the disk"

// mdl is what the server has to watch so that it can be asked which commits are under way.
const mdl = "wait/lock/metadata/sql/mdl"

// CheckCommits refuses a server that does not say which commits are under way, see AwaitCommits.
func (s *Session) CheckCommits(ctx context.Context) error {
	row, err := s.One(ctx, "SELECT @@GLOBAL.performance_schema, (SELECT enabled FROM performance_schema.setup_instruments WHERE name = '"+mdl+"'), "+
		"(SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Performance_schema_metadata_lock_lost')")
	if err != nil {
		return err
	}
	var e *fault.Error
	switch where := s.target.where; {
	case row[0] != "1":
		e = fault.New(fault.MYSetting, where, "a copy without GTIDs asks the performance schema which commits are under way, and it is off", "setting", "performance_schema", "value", "ON")
		e.Remedy = "Set performance_schema = ON in the server's configuration and restart it; or turn GTIDs on, with which it is not asked."
	case row[1] != "YES":
		e = fault.New(fault.MYSetting, where, "a copy without GTIDs asks the performance schema which commits are under way, and it does not watch them", "setting", mdl, "value", "YES")
		e.Remedy = "UPDATE performance_schema.setup_instruments SET enabled = 'YES' WHERE name = '" + mdl + "';"
	case row[2] != "0":
		e = fault.New(fault.MYSetting, where, fmt.Sprintf("the performance schema has lost sight of %s locks, which may be commits under way", row[2]),
			"setting", "performance_schema_max_metadata_locks", "value", "-1")
		e.Remedy = "Set performance_schema_max_metadata_locks = -1 in the server's configuration and restart it; or turn GTIDs on."
	default:
		return nil
	}
	return e
}

// AwaitCommits waits until every commit of a MySQL server has ended that was under way when it was called: what was logged before
// the call is visible behind it. A transaction holds the lock COMMIT from before it is logged until after it is visible, whatever
// it waits for in between. As AwaitExecuted it asks meanwhile every second.
func (s *Session) AwaitCommits(ctx context.Context, meanwhile func() error) error {
	defer s.target.Wait(commitWait)()
	if err := s.CheckCommits(ctx); err != nil {
		return err
	}
	before, err := s.commits(ctx)
	if err != nil {
		return err
	}
	for asked := time.Now(); len(before) > 0; {
		if time.Since(asked) >= time.Second {
			asked = time.Now()
			if err := meanwhile(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(commitPause):
		}
		now, err := s.commits(ctx)
		if err != nil {
			return err
		}
		for c := range before {
			if !now[c] {
				delete(before, c)
			}
		}
	}
	return nil
}

// commits are the commits under way: who makes each, in which of its events, and the lock.
func (s *Session) commits(ctx context.Context) (map[string]bool, error) {
	under := make(map[string]bool)
	return under, s.Query(ctx, "SELECT CONCAT_WS(' ', owner_thread_id, owner_event_id, object_instance_begin) FROM performance_schema.metadata_locks "+
		"WHERE object_type = 'COMMIT'", func(c [][]byte) error {
		under[string(c[0])] = true
		return nil
	})
}
