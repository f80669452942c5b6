package server

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// Facts are what a source has to know of a server.
type Facts struct {
	// Version is major*10000 + minor*100 + patch.
	Version int
	MariaDB bool
	// UUID is the server's own; empty for MariaDB.
	UUID string
	// Family is how places in the server's log are named.
	Family    position.Type
	variables map[string]string
}

// Facts asks the server what it is.
func (s *Session) Facts(ctx context.Context) (*Facts, error) {
	v, err := s.Pairs(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'server_uuid', 'log_bin', 'binlog_format', 'binlog_row_image', "+
		"'binlog_row_metadata', 'binlog_row_value_options', 'gtid_mode')")
	if err != nil {
		return nil, err
	}
	f := &Facts{UUID: v["server_uuid"], variables: v, Family: position.MySQLBinlog}
	f.MariaDB = strings.Contains(strings.ToLower(v["version"]), "mariadb")
	number, _, _ := strings.Cut(v["version"], "-")
	for i, part := range strings.SplitN(number, ".", 3) {
		n, _ := strconv.Atoi(part) // a version that is no number is an old one
		f.Version += n * [...]int{10_000, 100, 1}[i]
	}
	switch {
	case f.MariaDB:
		f.Family = position.MariaDBGTID
	case v["gtid_mode"] == "ON":
		f.Family = position.MySQLGTID
	}
	return f, nil
}

// Setting is what a server has to have so that its log has every change with every column.
type Setting struct {
	Name, Value string
	// Why is what is missing otherwise.
	Why string
}

// Settings are those of the log that a start asks for.
func Settings() []Setting {
	return []Setting{
		{"binlog_format", "ROW", "the log has statements in place of rows"},
		{"binlog_row_image", "FULL", "the log has changes without all their columns"},
		{"binlog_row_metadata", "FULL", "the log does not have the names of columns"},
		{"binlog_row_value_options", "", "the log has parts of JSON documents in place of the documents"},
	}
}

// Check refuses a server whose log does not have every change with every column.
func (f *Facts) Check(where string) error {
	if err := f.CheckVersion(where); err != nil {
		return err
	}
	if err := f.CheckLog(where); err != nil {
		return err
	}
	for _, s := range Settings() {
		if err := f.CheckSetting(s, where); err != nil {
			return err
		}
	}
	return nil
}

// CheckVersion refuses a server that is too old.
func (f *Facts) CheckVersion(where string) error {
	want, least := "MySQL 8.0.17", 8_00_17
	if f.MariaDB {
		want, least = "MariaDB 10.5", 10_05_00
	}
	if f.Version < least {
		return fault.New(fault.MYTooOld, where, fmt.Sprintf("the server has version %s", f.variables["version"]), "want", want)
	}
	return nil
}

// CheckLog refuses a server without a log.
func (f *Facts) CheckLog(where string) error {
	if f.variables["log_bin"] != "ON" {
		return fault.New(fault.MYNoBinlog, where, "log_bin is off")
	}
	return nil
}

// CheckSetting refuses a server with another value of a setting.
func (f *Facts) CheckSetting(s Setting, where string) error {
	if got := f.variables[s.Name]; got != s.Value {
		return fault.New(fault.MYSetting, where, fmt.Sprintf("%s is %s", s.Name, got), "setting", s.Name, "value", "'"+s.Value+"'")
	}
	return nil
}

// Executed is what a server with GTIDs has made visible.
func (s *Session) Executed(ctx context.Context) (position.GTIDSet, error) {
	row, err := s.One(ctx, "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		return position.GTIDSet{}, err
	}
	return position.ParseGTIDSet(row[0])
}

// Status is where the server writes its log. Whatever a statement saw that ended before was logged before this place.
func (s *Session) Status(ctx context.Context, f *Facts) (position.BinlogPos, error) {
	sql := "SHOW MASTER STATUS"
	if !f.MariaDB && f.Version >= 8_02_00 {
		sql = "SHOW BINARY LOG STATUS"
	}
	row, err := s.One(ctx, sql)
	if err != nil {
		return position.BinlogPos{}, err
	}
	if len(row) < 2 {
		return position.BinlogPos{}, fault.New(fault.MYNoBinlog, s.target.where, "the server shows no binary log")
	}
	pos, err := strconv.ParseUint(row[1], 10, 64)
	if err != nil {
		return position.BinlogPos{}, fmt.Errorf("position of the binary log: %w", err)
	}
	return position.NewBinlogPos(row[0], pos)
}

// History is what the server has of its log, for points of its family.
func (s *Session) History(ctx context.Context, f *Facts) (*core.History, error) {
	h := &core.History{Logged: core.Point{Family: f.Family}, Purged: core.Point{Family: f.Family}}
	var err error
	switch f.Family {
	case position.MySQLGTID:
		if h.Purged.GTIDs, h.Logged.GTIDs, err = s.gtids(ctx); err != nil {
			return nil, err
		}
	case position.MariaDBGTID:
		if h.Logged.Maria, err = s.MariaLogged(ctx); err != nil {
			return nil, err
		}
		if h.Purged.Maria, err = s.mariaPurged(ctx); err != nil {
			return nil, err
		}
	default:
		if h.Files, err = s.binlogs(ctx); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// owner is who commits a transaction that is logged and perhaps not yet visible.
var owner = regexp.MustCompile(`#[0-9]+`)

// gtids are the transactions of which a server with GTIDs no longer has the log, and those that it has logged: it has executed
// them, or they are being committed.
func (s *Session) gtids(ctx context.Context) (purged, logged position.GTIDSet, err error) {
	// In one row, since it is read from left to right: what is no longer owned was executed.
	row, err := s.One(ctx, "SELECT @@GLOBAL.gtid_purged, @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed")
	if err != nil {
		return purged, logged, err
	}
	owned, err := position.ParseGTIDSet(owner.ReplaceAllString(row[1], ""))
	if err != nil {
		return purged, logged, err
	}
	if purged, err = position.ParseGTIDSet(row[0]); err != nil {
		return purged, logged, err
	}
	if logged, err = position.ParseGTIDSet(row[2]); err != nil {
		return purged, logged, err
	}
	logged.AddSet(owned)
	return purged, logged, nil
}

// mariaPurged is what lies before the oldest file of a MariaDB server's log.
func (s *Session) mariaPurged(ctx context.Context) (position.MariaGTIDSet, error) {
	files, err := s.binlogs(ctx)
	if err != nil || len(files) == 0 {
		return position.MariaGTIDSet{}, err
	}
	row, err := s.One(ctx, "SELECT BINLOG_GTID_POS('"+files[0].File()+"', 4)")
	if err != nil {
		return position.MariaGTIDSet{}, err
	}
	return position.ParseMariaGTIDSet(row[0])
}

// binlogs are the server's files of the log, in their order, and how long each is.
func (s *Session) binlogs(ctx context.Context) ([]position.BinlogPos, error) {
	var files []position.BinlogPos
	err := s.Query(ctx, "SHOW BINARY LOGS", func(c [][]byte) error {
		size, err := strconv.ParseUint(string(c[1]), 10, 64)
		if err != nil {
			return fmt.Errorf("size of binary log %s: %w", c[0], err)
		}
		at, err := position.NewBinlogPos(string(c[0]), size)
		files = append(files, at)
		return err
	})
	return files, err
}

// MariaLogged is what a MariaDB server has logged.
func (s *Session) MariaLogged(ctx context.Context) (position.MariaGTIDSet, error) {
	row, err := s.One(ctx, "SELECT @@GLOBAL.gtid_binlog_pos")
	if err != nil {
		return position.MariaGTIDSet{}, err
	}
	return position.ParseMariaGTIDSet(row[0])
}

// AwaitExecuted waits until the server has made a set visible, which its log has. A commit that is logged may have to wait for long: for
// a replica that is to acknowledge it, or for a disk. So the wait has no limit; but every second it is asked whether there is still
// something to wait for, of which meanwhile is the caller's part. A set that the server has not even logged it will not make visible: it
// is another one than the log was read from, or came back without the end of its log.
func (s *Session) AwaitExecuted(ctx context.Context, set position.GTIDSet, meanwhile func() error) error {
	defer s.target.Wait(commitWait)()
	for {
		row, err := s.One(ctx, "SELECT WAIT_FOR_EXECUTED_GTID_SET('"+set.String()+"', 1)")
		if err != nil {
			return err
		}
		if row[0] == "0" {
			return nil
		}
		if err := meanwhile(); err != nil {
			return err
		}
		_, logged, err := s.gtids(ctx)
		if err != nil {
			return err
		}
		if !logged.ContainsSet(set) {
			return fault.New(fault.MYNotOneServer, s.target.where, "the server does not have "+set.Minus(logged).String()+", which its log had", "where", s.target.where)
		}
	}
}

// MariaSnapshot opens a snapshot and returns what it sees: MariaDB makes snapshot and place in the log one.
func (s *Session) MariaSnapshot(ctx context.Context) (position.MariaGTIDSet, error) {
	if err := s.Exec(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"); err != nil {
		return position.MariaGTIDSet{}, err
	}
	at, err := s.Pairs(ctx, "SHOW STATUS LIKE 'binlog_snapshot_%'")
	if err != nil {
		return position.MariaGTIDSet{}, err
	}
	row, err := s.One(ctx, "SELECT BINLOG_GTID_POS('"+at["binlog_snapshot_file"]+"', "+at["binlog_snapshot_position"]+")")
	if err != nil {
		return position.MariaGTIDSet{}, err
	}
	return position.ParseMariaGTIDSet(row[0])
}
