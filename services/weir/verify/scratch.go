package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/services/weir/verify/shop"
)

// scratch is what a run makes at the user's databases, all of it named after the run.
type scratch struct {
	source, target string // URLs
	id             string
}

func (s scratch) shop() string { return s.id + "_shop" }
func (s scratch) copy() string { return s.id + "_copy" }
func (s scratch) log() string  { return s.id + "_log" }

// begin makes the shop's tables; the sinks make their own.
func (s scratch) begin(ctx context.Context) error {
	return run(ctx, s.source, shop.SchemaIn(s.shop()))
}

// end drops all of it. It waits for nobody: sessions that still read a slot are ended.
func (s scratch) end(ctx context.Context) error {
	own := "'" + strings.ReplaceAll(s.id, "_", `\_`) + "'"
	errs := []error{
		run(ctx, s.source, `SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots
			WHERE active_pid IS NOT NULL AND (slot_name LIKE 'weir\_' || `+own+` || '\_%' OR slot_name LIKE 'oracle\_' || `+own+` || '\_%')`),
		eventually(ctx, func() error {
			return run(ctx, s.source, `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
			WHERE slot_name LIKE 'weir\_' || `+own+` || '\_%' OR slot_name LIKE 'oracle\_' || `+own+` || '\_%'`)
		}),
		run(ctx, s.source, `DO $$ DECLARE p name; BEGIN
			FOR p IN SELECT pubname FROM pg_publication WHERE pubname LIKE 'weir\_' || `+own+` || '\_%' OR pubname LIKE 'oracle\_' || `+own+` || '\_%'
			LOOP EXECUTE format('DROP PUBLICATION %I', p); END LOOP; END $$`),
		run(ctx, s.source, "DROP SCHEMA IF EXISTS "+s.shop()+" CASCADE"),
		run(ctx, s.target, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'weir:%' || `+own+` || '%'`),
	}
	for _, schema := range []string{s.copy(), s.log()} {
		errs = append(errs, run(ctx, s.target, "DROP SCHEMA IF EXISTS "+schema+" CASCADE"))
	}
	return errors.Join(errs...)
}

// run runs SQL in a session of its own.
func run(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%.60q: %w", sql, err)
	}
	return nil
}

// value asks for one value.
func value[T any](ctx context.Context, url, sql string, args ...any) (v T, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return v, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = conn.QueryRow(ctx, sql, args...).Scan(&v)
	return v, err
}
