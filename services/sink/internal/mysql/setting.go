package mysql

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/transact"
)

// variable is a setting of the server; empty when it has none of the name.
func (s *session) variable(ctx context.Context, name string) (string, error) {
	found, err := s.query(ctx, "SHOW GLOBAL VARIABLES LIKE "+text(name))
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0].text(1), nil
}

// checkFormat refuses a server that logs statements: it does not take rows under READ COMMITTED.
func (s *session) checkFormat(ctx context.Context, at transact.Place) error {
	logs, err := s.variable(ctx, "log_bin")
	if err != nil || logs != "ON" {
		return err
	}
	format, err := s.variable(ctx, "binlog_format")
	if err != nil || format != "STATEMENT" {
		return err
	}
	return fault.New(fault.SinkSetting, at.Sink, "binlog_format is STATEMENT, under which the server takes no rows of READ COMMITTED",
		"setting", "binlog_format", "value", "'ROW'", "job", at.Job)
}

// keyless are the settings under which no table without a primary key can be made, by server.
var keyless = map[bool]string{false: "sql_require_primary_key", true: "innodb_force_primary_key"}

// checkKeyless refuses to make tables without a key at a server that wants one.
func (s *session) checkKeyless(ctx context.Context, mode spec.Mode, at transact.Place) error {
	if mode == spec.Upsert {
		return nil
	}
	name := keyless[s.maria]
	on, err := s.variable(ctx, name)
	if err != nil || on != "ON" {
		return err
	}
	return fault.New(fault.SinkSetting, at.Sink, fmt.Sprintf("%s is ON, and tables of mode %s have no key", name, mode),
		"setting", name, "value", "OFF", "job", at.Job)
}
