package doctor

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// Facts are what a doctor has to know of a server besides what a source has to.
type Facts struct {
	*server.Facts

	// Account is who the server takes the session for, as SQL: `weir`@`%`.
	Account string
	// Login is the account for people.
	Login     string
	grants    []string
	variables map[string]string
}

// Look asks the server.
func Look(ctx context.Context, s *server.Session, known *server.Facts) (*Facts, error) {
	f := &Facts{Facts: known}
	var err error
	f.variables, err = s.Pairs(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'binlog_expire_logs_seconds', "+
		"'binlog_expire_logs_auto_purge', 'expire_logs_days', 'max_allowed_packet', 'innodb_native_foreign_keys', 'partial_revokes', "+
		"'server_id', 'log_bin', 'gtid_mode', 'enforce_gtid_consistency')")
	if err != nil {
		return nil, err
	}
	row, err := s.One(ctx, "SELECT CURRENT_USER()")
	if err != nil {
		return nil, err
	}
	f.Login = row[0]
	at := strings.LastIndexByte(f.Login, '@')
	err = s.Query(ctx, "SHOW GRANTS", func(c [][]byte) error {
		f.grants = append(f.grants, string(c[0]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.Account = core.Quote(f.Login[:at]) + "@" + core.Quote(f.Login[at+1:])
	return f, nil
}

func (f *Facts) number(name string) (n int64, ok bool) {
	v, err := strconv.ParseFloat(f.variables[name], 64) // MariaDB has days with fractions
	return int64(v), err == nil
}

// set writes a setting for sessions to come. MariaDB cannot note it for the next start.
func (f *Facts) set(name, value string) string {
	if f.MariaDB {
		return "SET GLOBAL " + name + " = " + value + ";"
	}
	return "SET PERSIST " + name + " = " + value + ";"
}

// keep is what a statement alone does not do.
func (f *Facts) keep(name, value string) string {
	advice := "Sessions that are open keep the old value until they connect anew. A managed service has it in its parameter group."
	if f.MariaDB {
		advice = "Also write " + name + " = " + value + " into the server's configuration, so that it is kept. " + advice
	}
	return advice
}

// inDatabase is a database as GRANT takes it, where _ and % stand for letters unless rights can be revoked in part. Of two forms
// that match, the servers look at one only; so a form that the account has rights under is kept.
func (f *Facts) inDatabase(name string) string {
	plain := core.Quote(name) + ".*"
	if f.variables["partial_revokes"] == "ON" || slices.ContainsFunc(f.grants, func(g string) bool { return strings.Contains(g, " ON "+plain+" TO ") }) {
		return plain
	}
	return core.Quote(strings.NewReplacer(`_`, `\_`, `%`, `\%`).Replace(name)) + ".*"
}
