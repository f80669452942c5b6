package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

const (
	// keepLeast is how long a log has to be kept so that a job may stand still over a night.
	keepLeast = 24 * time.Hour
	// keepAdvised is what is proposed instead.
	keepAdvised = 7 * 24 * time.Hour
	// packetLeast is the max_allowed_packet below which rows of ordinary size are in danger, packetAdvised MySQL's default.
	packetLeast   = 16 << 20
	packetAdvised = 64 << 20
)

// checker makes findings of one group.
type checker struct {
	group    string
	findings []preflight.Finding
}

func (c *checker) ok(check, format string, args ...any) {
	c.findings = append(c.findings, preflight.Finding{Group: c.group, Check: check, Status: preflight.OK, Found: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(check, subject, found, why string, remedy preflight.Remedy) {
	c.findings = append(c.findings, preflight.Finding{
		Group: c.group, Check: check, Subject: subject, Status: preflight.Warning, Found: found, Why: why, Remedy: &remedy,
	})
}

// fail adds an error of the start; why is what follows from it where the error does not say.
func (c *checker) fail(check, subject string, err error, why string, remedy preflight.Remedy) {
	f := preflight.Failed(c.group, check, err, &remedy)
	f.Subject, f.Why = subject, why
	c.findings = append(c.findings, f)
}

// Judge judges the server. commits is the error of a start that copies without GTIDs and cannot see which commits are under way.
func (f *Facts) Judge(where string, commits error) []preflight.Finding {
	c := checker{group: where}
	c.ok("connect", "account %s", f.Login)
	if err := f.CheckVersion(where); err != nil {
		c.fail("version", "", err, "", preflight.Remedy{Advice: "Upgrade the server, or read from a replica that is newer."})
	} else {
		c.ok("version", "%s", f.variables["version"])
	}
	if err := f.CheckLog(where); err != nil {
		c.fail("log_bin", "", err, "there is no log to follow", preflight.Remedy{
			Restart: true, Advice: "Write log_bin = binlog and a server_id into the [mysqld] part of the server's configuration; it cannot be set while the server runs. " +
				"A managed service writes the log when its backups are on.",
		})
	} else {
		c.ok("log_bin", "on")
		f.retention(&c)
	}
	for _, s := range server.Settings() {
		check := s.Name
		if strings.HasPrefix(check, "binlog_row_") {
			check = strings.TrimPrefix(check, "binlog_")
		}
		if err := f.CheckSetting(s, where); err != nil {
			value := "'" + s.Value + "'"
			c.fail(check, "", err, s.Why, preflight.Remedy{SQL: []string{f.set(s.Name, value)}, Advice: f.keep(s.Name, s.Value)})
		} else {
			c.ok(check, "%s", orNone(s.Value))
		}
	}
	f.gtids(&c, commits)
	return c.findings
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (f *Facts) gtids(c *checker, commits error) {
	switch {
	case f.MariaDB:
		c.ok("gtid_mode", "MariaDB has its GTIDs always")
	case f.variables["gtid_mode"] == "ON":
		c.ok("gtid_mode", "on")
	case commits == nil:
		c.warn("gtid_mode", "", "gtid_mode is "+f.variables["gtid_mode"],
			"positions are places in this server's files: the job cannot go on at another server", f.gtidRemedy())
	default:
		c.fail("gtid_mode", "", commits, "a copy needs to know what is visible of the log", f.gtidRemedy())
	}
}

// gtidRemedy turns GTIDs on while the server runs, by the steps that MySQL wants.
func (f *Facts) gtidRemedy() preflight.Remedy {
	var sql []string
	if f.variables["enforce_gtid_consistency"] != "ON" {
		sql = append(sql, f.set("enforce_gtid_consistency", "ON"))
	}
	steps := []string{"OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"}
	for i, step := range steps {
		if strings.EqualFold(step, f.variables["gtid_mode"]) {
			for _, next := range steps[i+1:] {
				sql = append(sql, f.set("gtid_mode", next))
			}
		}
	}
	return preflight.Remedy{SQL: sql, Advice: "With replicas, make each step on all servers before the next, and wait with the last one until no replica " +
		"has transactions without a name left (Ongoing_anonymous_transaction_count is 0)."}
}

func (f *Facts) retention(c *checker) {
	kept, name := time.Duration(0), "binlog_expire_logs_seconds"
	if n, ok := f.number(name); ok {
		kept = time.Duration(n) * time.Second
	} else if n, ok := f.number("expire_logs_days"); ok {
		name, kept = "expire_logs_days", time.Duration(n)*24*time.Hour
	}
	switch {
	case kept == 0 || f.variables["binlog_expire_logs_auto_purge"] == "OFF":
		c.ok("retention", "the log is kept until somebody purges it")
	case kept < keepLeast:
		value := fmt.Sprint(int64(keepAdvised / time.Second))
		c.warn("retention", "", fmt.Sprintf("the log is kept for %s", kept),
			"a job that stands still for longer loses its place and has to begin anew (MY_PURGED)",
			preflight.Remedy{SQL: []string{f.set(name, value)}, Advice: f.keep(name, value) + " Amazon RDS purges by its own clock: " +
				"CALL mysql.rds_set_configuration('binlog retention hours', 168);"})
	default:
		c.ok("retention", "the log is kept for %s", kept)
	}
}

// Rights are the outcomes of what a start does at the server: nil where it may.
type Rights struct {
	// Status is of the question where the log is, Dump of the log itself.
	Status, Dump error
}

// Replication judges the rights that are on the whole server.
func (f *Facts) Replication(where string, r Rights) []preflight.Finding {
	c := checker{group: where}
	for _, right := range []struct {
		check, name string
		err         error
	}{{"replication_client", "REPLICATION CLIENT", r.Status}, {"replication_slave", "REPLICATION SLAVE", r.Dump}} {
		switch {
		case right.err == nil:
			c.ok(right.check, "account %s has it", f.Login)
		case fault.CodeOf(right.err) == fault.MYNoRight:
			c.fail(right.check, "", right.err, "", preflight.Remedy{SQL: []string{"GRANT " + right.name + " ON *.* TO " + f.Account + ";"}})
		default:
			remedy := preflight.Remedy{Advice: "See the server's own log."}
			if e, ok := errors.AsType[*fault.Error](right.err); ok && e.Remedy != "" {
				remedy.Advice = e.Remedy
			}
			c.fail("log", "", right.err, "", remedy)
		}
	}
	return c.findings
}
