package doctor

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

const (
	// keepSmall is the max_slot_wal_keep_size below which a short stop of a job costs its slot.
	keepSmall = 1 << 10 // MiB
	// keepAdvised is what is proposed instead.
	keepAdvised = "10GB"
	// moreSlots is how many slots or walsenders are added to a server that has none left.
	moreSlots = 5
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

// Judge judges the server and the role. has says that the job has its slot already, so that none has to be free.
func (f *Facts) Judge(t *pgrepl.Target, has bool) []preflight.Finding {
	c := checker{group: t.Where()}
	f.version(&c, t)
	f.pooler(&c)
	f.service(&c)
	f.walLevel(&c, t)
	f.room(&c, t, has)
	f.replication(&c, t)
	f.retention(&c)
	f.open(&c)
	f.failover(&c)
	return c.findings
}

// alone asks the start's own check about one fact: all others are as they should be.
func alone(t *pgrepl.Target, set func(s *pgrepl.Server)) error {
	s := pgrepl.Server{Version: pgrepl.MinVersion, WALLevel: "logical", Replication: true}
	set(&s)
	return t.Check(s)
}

func (f *Facts) version(c *checker, t *pgrepl.Target) {
	if err := alone(t, func(s *pgrepl.Server) { s.Version = f.Version }); err != nil {
		c.findings = append(c.findings, preflight.Failed(c.group, "version", err, nil))
	} else {
		c.ok("version", "PostgreSQL %d.%d", f.Version/10000, f.Version%10000)
	}
	if err := alone(t, func(s *pgrepl.Server) { s.InRecovery = f.InRecovery }); err != nil {
		c.findings = append(c.findings, preflight.Failed(c.group, "primary", err, nil))
		return
	}
	c.ok("primary", "the server is a primary")
}

func (f *Facts) pooler(c *checker) {
	if !f.Relayed {
		c.ok("pooler", "the server itself answers at the address")
		return
	}
	c.warn("pooler", "", "another process answers for the server: a pooler or a proxy",
		"replication needs one connection to one server, and settings that a pooler in transaction mode loses between statements",
		preflight.Remedy{Advice: "Put the server's own address and port into " + c.group + ".url."})
}

func (f *Facts) service(c *checker) {
	if f.Service != SelfManaged {
		c.ok("service", "%s; settings are changed there and not by ALTER SYSTEM, see docs/doctor.md", f.Service)
	}
}

func (f *Facts) walLevel(c *checker, t *pgrepl.Target) {
	err := alone(t, func(s *pgrepl.Server) { s.WALLevel = f.WALLevel })
	if err == nil {
		c.ok("wal_level", "logical")
		return
	}
	remedy := preflight.Remedy{SQL: []string{"ALTER SYSTEM SET wal_level = logical;"}, Restart: true}
	switch f.Service {
	case RDS:
		remedy = preflight.Remedy{Advice: "Set rds.logical_replication = 1 in the parameter group and reboot the instance."}
	case CloudSQL:
		remedy = preflight.Remedy{Advice: "Set the flag cloudsql.logical_decoding = on; the instance restarts."}
	case Azure:
		remedy = preflight.Remedy{Advice: "Set the server parameter wal_level to logical and restart the server."}
	case SelfManaged:
	}
	c.fail("wal_level", "", err, "the log lacks what is needed to tell rows from it", remedy)
}

// setting is a change of a setting that holds after a restart.
func (f *Facts) setting(name string, value any) preflight.Remedy {
	if f.Service != SelfManaged {
		return preflight.Remedy{Advice: fmt.Sprintf("Set %s = %v in the parameters of %s and restart the instance.", name, value, f.Service)}
	}
	return preflight.Remedy{SQL: []string{fmt.Sprintf("ALTER SYSTEM SET %s = %v;", name, value)}, Restart: true}
}

// reloaded is a change of a setting that holds at once.
func (f *Facts) reloaded(name, value string) preflight.Remedy {
	if f.Service != SelfManaged {
		return preflight.Remedy{Advice: fmt.Sprintf("Set %s = %s in the parameters of %s.", name, value, f.Service)}
	}
	return preflight.Remedy{SQL: []string{"ALTER SYSTEM SET " + name + " = " + literal(value) + ";", "SELECT pg_reload_conf();"}}
}

func (f *Facts) room(c *checker, t *pgrepl.Target, has bool) {
	free := pgrepl.Server{SlotsLimit: 1, Senders: 1}
	slots, senders := free, free
	slots.SlotsUsed, slots.SlotsLimit = f.SlotsUsed, f.SlotsLimit
	senders.SendersUsed, senders.Senders = f.SendersUsed, f.Senders
	switch err := t.CheckRoom(slots); {
	case has:
		c.ok("slots", "the job has its slot; %d of %d are used", f.SlotsUsed, f.SlotsLimit)
	case err != nil:
		remedy := f.setting("max_replication_slots", f.SlotsLimit+moreSlots)
		remedy.Advice = strings.TrimSpace(remedy.Advice + " Or drop a slot that nobody needs any more.")
		c.fail("slots", "", err, "each job holds one slot as long as it lives", remedy)
	default:
		c.ok("slots", "%d of %d are used", f.SlotsUsed, f.SlotsLimit)
	}
	switch err := t.CheckRoom(senders); {
	case err != nil:
		c.fail("walsenders", "", err, "each running job reads over one walsender", f.setting("max_wal_senders", f.Senders+moreSlots))
	default:
		c.ok("walsenders", "%d of %d are used", f.SendersUsed, f.Senders)
	}
}

func (f *Facts) replication(c *checker, t *pgrepl.Target) {
	err := alone(t, func(s *pgrepl.Server) { s.Replication = f.Replication })
	if err == nil {
		c.ok("replication_right", "role %s may start replication", f.Role)
		return
	}
	c.fail("replication_right", f.Role, err, "", preflight.Remedy{SQL: []string{f.mayReplicate()}})
}

// mayReplicate lets the role start replication.
func (f *Facts) mayReplicate() string {
	if f.Service == RDS {
		return "GRANT rds_replication TO " + identifier(f.Role) + ";"
	}
	return "ALTER ROLE " + identifier(f.Role) + " REPLICATION;"
}

// retention judges how long a job may stand still before its slot loses log.
func (f *Facts) retention(c *checker) {
	var most Slot
	for _, s := range f.Slots {
		if s.Retained > most.Retained {
			most = s
		}
	}
	kept := "no slot keeps any log"
	if most.Name != "" {
		kept = fmt.Sprintf("slot %s keeps the most, %s", most.Name, size(most.Retained))
	}
	const loses = "a job that stands still while more log than that is written loses its slot and has to copy its tables again"
	switch limit := f.KeepMiB << 20; {
	case f.KeepMiB < 0:
		c.ok("retention", "max_slot_wal_keep_size has no limit: a job that stands still keeps log until the disk is full; %s", kept)
	case f.KeepMiB < keepSmall:
		c.warn("retention", "", fmt.Sprintf("max_slot_wal_keep_size is %d MB; %s", f.KeepMiB, kept), loses,
			f.reloaded("max_slot_wal_keep_size", keepAdvised))
	case most.Retained > limit/5*4:
		c.warn("retention", most.Name, fmt.Sprintf("max_slot_wal_keep_size is %d MB; %s", f.KeepMiB, kept), loses,
			f.reloaded("max_slot_wal_keep_size", fmt.Sprintf("%dMB", 4*f.KeepMiB)))
	default:
		c.ok("retention", "max_slot_wal_keep_size is %d MB; %s", f.KeepMiB, kept)
	}
	if f.IdleTimeout != "" {
		c.warn("idle_slot_timeout", "", "idle_replication_slot_timeout is "+f.IdleTimeout, "a job that is stopped for longer loses its slot",
			f.reloaded("idle_replication_slot_timeout", "0"))
	}
}

// open judges what a new slot has to wait for.
func (f *Facts) open(c *checker) {
	const why = "a new slot waits until every transaction that has written something has ended, and so does the copy"
	for _, t := range f.Transactions {
		c.warn("transactions", fmt.Sprintf("backend %d", t.PID),
			fmt.Sprintf("open for %s, %s, role %s, application %q", age(t.Age), t.Session, t.Role, t.App), why,
			preflight.Remedy{
				SQL:    []string{fmt.Sprintf("SELECT pg_terminate_backend(%d);", t.PID)},
				Advice: "Or let it end. idle_in_transaction_session_timeout ends forgotten ones.",
			})
	}
	switch {
	case len(f.Transactions) > 0:
	case !f.SeesAll && f.Running > 0:
		c.warn("transactions", "", fmt.Sprintf("%d are open; role %s may not see for how long", f.Running, f.Role), why,
			preflight.Remedy{SQL: []string{"GRANT pg_read_all_stats TO " + identifier(f.Role) + ";"}})
	default:
		c.ok("transactions", "none is open for long")
	}
	for _, p := range f.Prepared {
		c.warn("prepared_transactions", p.ID, fmt.Sprintf("prepared %s ago by role %s in database %s", age(p.Age), p.Role, p.Database), why,
			preflight.Remedy{
				SQL: []string{"ROLLBACK PREPARED " + literal(p.ID) + ";"}, Database: p.Database,
				Advice: "Or COMMIT PREPARED, as its transaction manager says.",
			})
	}
	if len(f.Prepared) == 0 {
		c.ok("prepared_transactions", "none waits for its second phase")
	}
}

// failover judges what a promotion of a standby would mean.
func (f *Facts) failover(c *checker) {
	switch {
	case len(f.Standbys) == 0:
		c.ok("failover", "no standby reads a slot of this server")
	case f.Version < failoverVersion:
		c.ok("failover", "%d standbys; before version 17 no slot survives a promotion: the job then stops with %s and its tables have to be copied again",
			len(f.Standbys), fault.PGTimelineChanged)
	case f.Synchronized == "":
		c.warn("failover", "", fmt.Sprintf("standbys read %s, and synchronized_standby_slots is empty", strings.Join(f.Standbys, ", ")),
			"a job may be ahead of the standby that is promoted, and then it cannot go on there",
			f.reloaded("synchronized_standby_slots", strings.Join(f.Standbys, ",")))
	default:
		c.ok("failover", "no job runs ahead of %s; the standbys need sync_replication_slots = on", f.Synchronized)
	}
}

// failoverVersion is the first version whose slots survive a promotion.
const failoverVersion = 170000

// Probe judges a replication connection against the session that answered the queries.
func Probe(group string, p pgrepl.Probed, s pgrepl.Server) []preflight.Finding {
	c := checker{group: group}
	if p.System.Identifier != s.System.Identifier {
		c.warn("one_server", "", "a second connection to the same address reached another server",
			"log and tables have to be of one server", preflight.Remedy{Advice: "Put the address of one server into " + group + ".url."})
	} else {
		c.ok("one_server", "a replication connection reaches the same server")
	}
	if p.SenderTimeout != pgrepl.SenderTimeout {
		c.warn("wal_sender_timeout", "", fmt.Sprintf("a reader asks for %s and gets %s", pgrepl.SenderTimeout, p.SenderTimeout),
			"the slot of a reader that died stays in use for that long",
			preflight.Remedy{Advice: "Let nothing between Weir and the server drop the startup parameter wal_sender_timeout."})
	} else {
		c.ok("wal_sender_timeout", "readers set %s for themselves", pgrepl.SenderTimeout)
	}
	return c.findings
}

func age(d time.Duration) string { return d.Round(time.Second).String() }

func size(bytes int64) string {
	const mib = 1 << 20
	if bytes < mib {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes/mib)
}
