package doctor

import (
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// good are the facts of a server with which nothing is wrong.
func good() Facts {
	return Facts{
		Server: pgrepl.Server{
			Version: 180001, WALLevel: "logical", Replication: true, CanCreate: true, SlotsUsed: 1, SlotsLimit: 10, Senders: 10,
		},
		Role: "weir", Database: "shop", KeepMiB: -1, SeesAll: true,
	}
}

func target(t *testing.T) *pgrepl.Target {
	t.Helper()
	target, err := pgrepl.NewTarget("postgres://weir:canary-pw@127.0.0.1:1/shop", "sources.db", core.Session{})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestAGoodServer(t *testing.T) {
	t.Parallel()
	f := good()
	for _, finding := range f.Judge(target(t), false) {
		if finding.Status != preflight.OK {
			t.Errorf("%+v", finding)
		}
		if err := finding.Validate(); err != nil {
			t.Errorf("%+v: %v", finding, err)
		}
	}
}

// TestServerChecks changes one fact at a time: exactly its check must notice, with the start's code and a remedy.
// Those that a server of the installed version can be brought into are executed in itest/doctor too.
func TestServerChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(f *Facts)
		check  string
		status preflight.Status
		code   fault.Code
		remedy string // a part of it
	}{
		"too old":          {func(f *Facts) { f.Version = 130010 }, "version", preflight.Error, fault.PGTooOld, "Upgrade"},
		"standby":          {func(f *Facts) { f.InRecovery = true }, "primary", preflight.Error, fault.PGStandby, "primary"},
		"pooler":           {func(f *Facts) { f.Relayed = true }, "pooler", preflight.Warning, "", "own address"},
		"wal_level":        {func(f *Facts) { f.WALLevel = "replica" }, "wal_level", preflight.Error, fault.PGWALLevel, "ALTER SYSTEM SET wal_level = logical;"},
		"wal_level on RDS": {func(f *Facts) { f.WALLevel, f.Service = "replica", RDS }, "wal_level", preflight.Error, fault.PGWALLevel, "rds.logical_replication"},
		"wal_level on Cloud SQL": {
			func(f *Facts) { f.WALLevel, f.Service = "replica", CloudSQL },
			"wal_level", preflight.Error, fault.PGWALLevel, "cloudsql.logical_decoding",
		},
		"wal_level on Azure": {func(f *Facts) { f.WALLevel, f.Service = "replica", Azure }, "wal_level", preflight.Error, fault.PGWALLevel, "server parameter"},
		"no slot":            {func(f *Facts) { f.SlotsUsed = 10 }, "slots", preflight.Error, fault.PGNoFreeSlot, "max_replication_slots = 15"},
		"no walsender":       {func(f *Facts) { f.SendersUsed = 10 }, "walsenders", preflight.Error, fault.PGNoFreeWalsender, "max_wal_senders = 15"},
		"no right":           {func(f *Facts) { f.Replication = false }, "replication_right", preflight.Error, fault.PGNoReplicationRight, `ALTER ROLE "weir" REPLICATION;`},
		"no right on RDS":    {func(f *Facts) { f.Replication, f.Service = false, RDS }, "replication_right", preflight.Error, fault.PGNoReplicationRight, "rds_replication"},
		"short log":          {func(f *Facts) { f.KeepMiB = 64 }, "retention", preflight.Warning, "", "max_slot_wal_keep_size = '10GB'"},
		"log nearly lost": {
			func(f *Facts) { f.KeepMiB, f.Slots = 2048, []Slot{{Name: "s", Retained: 1900 << 20}} },
			"retention", preflight.Warning, "", "'8192MB'",
		},
		"idle slots":           {func(f *Facts) { f.IdleTimeout = "1d" }, "idle_slot_timeout", preflight.Warning, "", "idle_replication_slot_timeout = '0'"},
		"open transaction":     {func(f *Facts) { f.Transactions = []Transaction{{PID: 77, Age: time.Hour}} }, "transactions", preflight.Warning, "", "pg_terminate_backend(77)"},
		"unseen transactions":  {func(f *Facts) { f.SeesAll, f.Running = false, 2 }, "transactions", preflight.Warning, "", "GRANT pg_read_all_stats"},
		"prepared":             {func(f *Facts) { f.Prepared = []Prepared{{ID: "it's"}} }, "prepared_transactions", preflight.Warning, "", "ROLLBACK PREPARED 'it''s';"},
		"standby unprotected":  {func(f *Facts) { f.Standbys = []string{"a", "b"} }, "failover", preflight.Warning, "", "synchronized_standby_slots = 'a,b'"},
		"managed, short log":   {func(f *Facts) { f.KeepMiB, f.Service = 64, RDS }, "retention", preflight.Warning, "", "parameters of Amazon RDS"},
		"managed, no slot":     {func(f *Facts) { f.SlotsUsed, f.Service = 10, Azure }, "slots", preflight.Error, fault.PGNoFreeSlot, "parameters of Azure"},
		"a limit of 0 is zero": {func(f *Facts) { f.KeepMiB = 0 }, "retention", preflight.Warning, "", "'10GB'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := good()
			c.change(&f)
			noticed := false
			for _, finding := range f.Judge(target(t), false) {
				if err := finding.Validate(); err != nil {
					t.Errorf("%+v: %v", finding, err)
				}
				if finding.Status == preflight.OK {
					continue
				}
				if finding.Check != c.check || finding.Status != c.status || finding.Code != c.code {
					t.Errorf("%+v", finding)
					continue
				}
				noticed = true
				r := finding.Remedy
				if text := strings.Join(r.SQL, " ") + r.Spec + r.Advice; !strings.Contains(text, c.remedy) {
					t.Errorf("remedy %q, want %q", text, c.remedy)
				}
				if strings.Contains(finding.Found+finding.Why, "canary-pw") {
					t.Errorf("the password is printed: %+v", finding)
				}
			}
			if !noticed {
				t.Error("nothing is noticed")
			}
		})
	}
}

func TestASlotThatIsThereNeedsNoOther(t *testing.T) {
	t.Parallel()
	f := good()
	f.SlotsUsed = f.SlotsLimit
	for _, finding := range f.Judge(target(t), true) {
		if finding.Status != preflight.OK {
			t.Errorf("%+v", finding)
		}
	}
}

func TestBefore17NoSlotSurvivesAPromotion(t *testing.T) {
	t.Parallel()
	f := good()
	f.Version, f.Standbys = 160004, []string{"a"}
	for _, finding := range f.Judge(target(t), false) {
		if finding.Check == "failover" && (finding.Status != preflight.OK || !strings.Contains(finding.Found, string(fault.PGTimelineChanged))) {
			t.Errorf("%+v", finding)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	s := pgrepl.Server{System: pgrepl.System{Identifier: "1"}}
	for _, c := range []struct {
		probed pgrepl.Probed
		bad    int
	}{
		{pgrepl.Probed{System: pgrepl.System{Identifier: "1"}, SenderTimeout: "5s"}, 0},
		{pgrepl.Probed{System: pgrepl.System{Identifier: "2"}, SenderTimeout: "5s"}, 1},
		{pgrepl.Probed{System: pgrepl.System{Identifier: "1"}, SenderTimeout: "1min"}, 1},
	} {
		found := Probe("sources.db", c.probed, s)
		if n := preflight.Count(found, preflight.Warning); n != c.bad {
			t.Errorf("%+v: %d warnings: %+v", c.probed, n, found)
		}
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	const alive, dead = "0123456789abcdef", "fedcba9876543210"
	slot := func(name string, change ...func(*Slot)) Slot {
		s := Slot{Name: name, Plugin: "pgoutput", Database: "shop", WALStatus: "reserved", Retained: 16 << 20}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	f := good()
	f.Slots = []Slot{
		slot("weir_shop_" + alive + "_3"),
		slot("weir_shop_" + dead + "_1"),
		slot("weir_other_"+dead+"_1", func(s *Slot) { s.ActivePID = 9 }),
		slot("weir_away_"+dead+"_1", func(s *Slot) { s.Database = "else" }),
		slot("weir_mine"), // somebody's own name
		slot("theirs"),
	}
	f.Publications = []string{"weir_shop_" + alive, "weir_shop_" + dead, "weir_other_" + dead, "weir_mine"}
	found := f.Leftovers("sources.db", []Life{{Job: "shop", Life: alive}}, true)
	var drops []string
	for _, x := range found {
		if x.Status != preflight.Warning || !strings.Contains(x.Why, "no job") {
			t.Errorf("%+v", x)
		}
		drops = append(drops, x.Remedy.SQL...)
	}
	want := "SELECT pg_drop_replication_slot('weir_shop_" + dead + `_1'); DROP PUBLICATION "weir_shop_` + dead + `";`
	if got := strings.Join(drops, " "); got != want {
		t.Errorf("drops %s\n want %s", got, want)
	}
	// Without a mesh nothing is claimed.
	unknown := f.Leftovers("sources.db", nil, false)
	if len(unknown) != 4 {
		t.Errorf("%d findings without a mesh: %+v", len(unknown), unknown)
	}
	for _, x := range unknown {
		if !strings.Contains(x.Why, "cannot be known") {
			t.Errorf("%+v", x)
		}
	}
	f.Slots, f.Publications = nil, nil
	if found := f.Leftovers("sources.db", nil, false); len(found) != 1 || found[0].Status != preflight.OK {
		t.Errorf("%+v", found)
	}
}
