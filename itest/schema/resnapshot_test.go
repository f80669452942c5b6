package schema

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// awaitSame waits until a target's table is the source's.
func (s *scene) awaitSame(t *testing.T, schema, table string) {
	t.Helper()
	var got, want string
	harness.Await(t, 60*time.Second, "the copy of "+table, func(context.Context) error {
		if got, want = s.rows(t, target, schema+"."+table), s.rows(t, source, "public."+table); got != want {
			return errors.New("the target has\n" + got + "\nthe source has\n" + want)
		}
		return nil
	})
}

// `weir job resnapshot` mends what somebody did at the target, and changes that the log cannot follow, of the table named and
// of no other; a sink that does not allow it is told of before anything happens.
func TestResnapshot(t *testing.T) {
	s := start(t, table+`; CREATE TABLE o (id int PRIMARY KEY, v text); INSERT INTO o VALUES (1, 'a');`, sink("out", "evolve", ", allow: [truncate]"))
	s.at(t, target, "DELETE FROM out.t; INSERT INTO out.t VALUES (9, 'foreign', 9); INSERT INTO out.o VALUES (9, 'foreign')")
	s.at(t, source, "INSERT INTO t VALUES (3, 'c', 3); UPDATE o SET v = 'b'")
	s.Must(t, "job", "resnapshot", "schema", "public.t")
	s.awaitSame(t, "out", "t")
	s.CaughtUp(t, "schema")
	s.wantRows(t, "out.o", "id integer, v text", `{"v": "b", "id": 1}`, `{"v": "foreign", "id": 9}`)

	s.at(t, source, "INSERT INTO t VALUES (4, 'd', 4); ALTER TABLE t ALTER n TYPE text USING 'n' || n, DROP v, ADD w int DEFAULT 7; INSERT INTO t VALUES (5, 'n5', 5)")
	s.wantStop(t, differs, resnap)
	s.Must(t, "job", "resnapshot", "schema", "public.t")
	s.awaitSame(t, "out", "t")
	s.at(t, source, "UPDATE t SET w = 8 WHERE id = 1; DELETE FROM t WHERE id = 2")
	s.CaughtUp(t, "schema")
	s.awaitSame(t, "out", "t")
	s.Verify(t, "schema")
}

func TestResnapshotRefused(t *testing.T) {
	s := start(t, table, sink("out", "evolve", ""))
	before := s.Status(t, "schema").Fence
	for _, args := range [][]string{{}, {"public.t"}, {"public.nothing.else"}, {"private.t"}} {
		answer := s.Ask(t, append([]string{"--json", "job", "resnapshot", "schema"}, args...)...)
		f, err := answer.Fault()
		if err != nil || f.Code != "WEIR-CLI-012" {
			t.Errorf("%q: %s, %v", args, answer, err)
		}
	}
	s.CaughtUp(t, "schema")
	if after := s.Status(t, "schema").Fence; after != before {
		t.Errorf("a refused order began attempt %d", after)
	}
}
