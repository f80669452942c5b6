package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/copies"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const (
	// rows is how many each of the tables has at first, rate how many transactions a second there are.
	rows = 20_000
	rate = 60
)

// tablesSpec is the job with these tables.
func tablesSpec(patterns string) string {
	return fmt.Sprintf(`apiVersion: weir/v1
job: shop
epoch: {interval: 250ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: postgres, url: "${SOURCE_URL}", tables: [%s], readers: 2, snapshot: {chunk_rows: 1000}}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, allow: [truncate]}
  log: {from: [db], type: postgres, url: "${TARGET_URL}", schema: log, mode: changelog}
`, patterns)
}

// Tables are added to a running job, leave it, and come back, while all of them are written to; the process of the source is
// killed while the first is copied.
func TestTablesOfARunningJob(t *testing.T) {
	s := begin(t)
	db := s.connect(t, source)
	if err := copies.Fill(t.Context(), db, rows); err != nil {
		t.Fatal(err)
	}
	load, err := copies.Open(t.Context(), func(ctx context.Context) (*pgx.Conn, error) { return source.Connect(ctx, s.db) }, rows, rate, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = load.Close() }) // its error is asked for below
	s.run(t, tablesSpec(`"goods.by_integer"`))
	s.CaughtUp(t, name)

	before := s.Status(t, name).Fence
	answers := make(chan application, 1)
	go func() { answers <- s.apply(t, tablesSpec(`"goods.by_integer", "goods.by_uuid"`)) }()
	harness.Await(t, 30*time.Second, "the copy to begin", func(context.Context) error {
		if s.Status(t, name).Fence == before {
			return errors.New("no new attempt")
		}
		return nil
	})
	reader := s.Of(mesh.CDCPostgres)[0]
	reader.Kill()
	if err := reader.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := <-answers; a.Epoch == 0 || !slices.Equal(a.Added, []string{"db/goods.by_uuid"}) || !slices.Equal(a.Settings, []string{"sources.db.tables"}) {
		t.Errorf("apply says %+v", a)
	}
	s.CaughtUp(t, name)

	a := s.apply(t, tablesSpec(`"goods.by_*", "!goods.by_text"`))
	if !slices.Equal(a.Added, []string{"db/goods.by_both"}) || len(a.Removed) != 0 {
		t.Errorf("apply says %+v", a)
	}
	if a := s.apply(t, tablesSpec(`"goods.by_*", "!goods.by_text", "!goods.by_uuid"`)); !slices.Equal(a.Removed, []string{"db/goods.by_uuid"}) {
		t.Errorf("apply says %+v", a)
	}
	s.CaughtUp(t, name)
	if a := s.apply(t, tablesSpec(`"goods.by_*"`)); !slices.Equal(a.Added, []string{"db/goods.by_text", "db/goods.by_uuid"}) {
		t.Errorf("apply says %+v", a)
	}
	if a := s.apply(t, tablesSpec(`"goods.by_*"`)); len(a.Added)+len(a.Removed)+len(a.Settings) != 0 || !a.Tables {
		t.Errorf("the same spec again: %+v", a)
	}
	s.CaughtUp(t, name)

	// A table that matches and was made later is shown with the command that adds it; that command is the spec as it is.
	s.at(t, source, "CREATE TABLE goods.by_late (id int PRIMARY KEY, v text); INSERT INTO goods.by_late SELECT i, 'late' FROM generate_series(1, 500) i")
	harness.Await(t, 60*time.Second, "the table to be reported", func(context.Context) error {
		if text := s.Must(t, "status", name).Stdout; !strings.Contains(text, "goods.by_late") || !strings.Contains(text, "weir job apply") {
			return errors.New(text)
		}
		return nil
	})
	if a := s.apply(t, tablesSpec(`"goods.by_*"`)); !slices.Equal(a.Added, []string{"db/goods.by_late"}) {
		t.Errorf("apply says %+v", a)
	}
	if err := load.Close(); err != nil {
		t.Fatal(err)
	}
	s.CaughtUp(t, name)
	s.Verify(t, name)
	s.wantSame(t, "goods.by_integer", "goods.by_uuid", "goods.by_both", "goods.by_text", "goods.by_late")
	for _, table := range copies.Keyed() {
		if table.Name == "by_uuid" {
			continue // emptied in between
		}
		read, changes, err := copies.Audit(t.Context(), db, s.connect(t, target), "log", table)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s: %d rows read, %d changes", table.Name, read, changes)
	}
}

// What cannot change within a life is refused by its name, before anything is done; a spec that cannot be run is undone by
// the one before.
func TestApplyRefused(t *testing.T) {
	s := begin(t)
	s.at(t, source, "CREATE SCHEMA goods; CREATE TABLE goods.a (id int PRIMARY KEY); INSERT INTO goods.a VALUES (1); CREATE TABLE goods.b (id int)")
	good := tablesSpec(`"goods.a"`)
	s.run(t, good)
	s.CaughtUp(t, name)
	before := s.Status(t, name).Fence
	answer := s.Ask(t, "--json", "job", "apply", s.File(t, "other.yaml", strings.Replace(good, "mode: changelog", "mode: append", 1)))
	if f, err := answer.Fault(); err != nil || f.Where != "sinks.log.mode" || answer.Exit != 2 {
		t.Errorf("%s, %v", answer, err)
	}
	if after := s.Status(t, name).Fence; after != before {
		t.Errorf("a refused spec began attempt %d", after)
	}
	answer = s.Ask(t, "--json", "job", "apply", s.File(t, "bad.yaml", tablesSpec(`"goods.*"`)))
	if f, err := answer.Fault(); err != nil || !strings.Contains(f.Why, "goods.b") {
		t.Errorf("%s, %v", answer, err)
	}
	s.apply(t, good)
	s.at(t, source, "INSERT INTO goods.a VALUES (2)")
	s.CaughtUp(t, name)
	s.wantSame(t, "goods.a")
}

// Two sources of one job on one server have slots and publications of their own, and leave nothing behind.
func TestTwoSourcesOnOneServer(t *testing.T) {
	s := begin(t)
	s.at(t, source, "CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1); CREATE TABLE b (id int PRIMARY KEY); INSERT INTO b VALUES (1)")
	s.run(t, `apiVersion: weir/v1
job: shop
sources:
  one: {type: postgres, url: "${SOURCE_URL}", tables: ["public.a"]}
  two: {type: postgres, url: "${SOURCE_URL}", tables: ["public.b"]}
sinks:
  copy: {from: [one, two], type: postgres, url: "${TARGET_URL}", schema: copy}
`)
	s.CaughtUp(t, name)
	s.at(t, source, "INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)")
	s.CaughtUp(t, name)
	s.wantSame(t, "public.a", "public.b")
	names := func() (all string) {
		err := s.connect(t, source).QueryRow(t.Context(), `SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM (
			SELECT regexp_replace(slot_name::text, '_[0-9a-f]{16}_[0-9]+$', '') AS name FROM pg_replication_slots WHERE database = current_database()
			UNION ALL SELECT regexp_replace(pubname::text, '_[0-9a-f]{16}$', '') FROM pg_publication) n`).Scan(&all)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := names(); got != "weir_shop_one weir_shop_one weir_shop_two weir_shop_two" {
		t.Errorf("slots and publications are %q", got)
	}
	s.Must(t, "job", "delete", name, "--yes")
	harness.Await(t, 30*time.Second, "nothing to be left behind", func(context.Context) error {
		if got := names(); got != "" {
			return errors.New("there are " + got)
		}
		return nil
	})
}
