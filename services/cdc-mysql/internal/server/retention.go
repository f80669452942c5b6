package server

import (
	"context"
	"strconv"
	"time"

	"weir.dev/weir/pkg/position"
)

// Kept is how many bytes of the server's log lie behind a place in its files; ok is false when the file is not among them.
func (s *Session) Kept(ctx context.Context, at position.BinlogPos) (bytes int64, ok bool, err error) {
	files, err := s.binlogs(ctx)
	for _, f := range files {
		order, same := f.Compare(at)
		switch {
		case !same:
		case f.Seq == at.Seq:
			bytes, ok = bytes+max(0, int64(f.Pos)-int64(at.Pos)), true
		case order > 0:
			bytes += int64(f.Pos)
		}
	}
	return bytes, ok, err
}

// Expiry is the age at which the server removes files of its log; 0 when it never does.
func (s *Session) Expiry(ctx context.Context) (time.Duration, error) {
	v, err := s.Pairs(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_expire_logs_seconds', 'binlog_expire_logs_auto_purge', 'expire_logs_days')")
	if err != nil || v["binlog_expire_logs_auto_purge"] == "OFF" {
		return 0, err
	}
	if n, err := strconv.ParseInt(v["binlog_expire_logs_seconds"], 10, 64); err == nil && n > 0 {
		return time.Duration(n) * time.Second, nil
	}
	days, err := strconv.ParseFloat(v["expire_logs_days"], 64) // MariaDB has fractions of days
	if err != nil {
		return 0, nil //nolint:nilerr // neither is there: the server keeps its log
	}
	return time.Duration(days * float64(24*time.Hour)), nil
}
