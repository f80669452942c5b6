package doctor

import (
	"maps"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

// myCase is one thing that is made wrong.
type myCase struct {
	name   string
	spoil  []string
	tables string
	source []string
	sink   []string
	group  string // empty where only one has the check
	check  string
	status preflight.Status
	code   fault.Code
	// mysql and maria say on which of the servers it can be wrong; neither means both.
	mysql, maria bool
}

const ledgerOfMySQL = "CREATE TABLE {target}.weir_ledger (job varchar(100) NOT NULL, sink varchar(40) NOT NULL, life varchar(100) NOT NULL, " +
	"fence bigint NOT NULL, epoch bigint NOT NULL, digest varchar(200) NOT NULL, positions longtext NOT NULL, updated datetime(6) NOT NULL, PRIMARY KEY (job, sink))"

var myCases = []myCase{
	{name: "my_format", spoil: []string{"SET GLOBAL binlog_format = 'MIXED'"}, check: "binlog_format", status: preflight.Error, code: fault.MYSetting},
	{name: "my_image", spoil: []string{"SET GLOBAL binlog_row_image = 'MINIMAL'"}, check: "row_image", status: preflight.Error, code: fault.MYSetting},
	{name: "my_metadata", spoil: []string{"SET GLOBAL binlog_row_metadata = 'MINIMAL'"}, check: "row_metadata", status: preflight.Error, code: fault.MYSetting},
	{name: "my_json", spoil: []string{"SET GLOBAL binlog_row_value_options = 'PARTIAL_JSON'"}, check: "row_value_options", status: preflight.Error, code: fault.MYSetting, mysql: true},
	{
		name: "my_gtid", spoil: []string{"SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE", "SET GLOBAL gtid_mode = OFF", "SET GLOBAL enforce_gtid_consistency = OFF"},
		check: "gtid_mode", status: preflight.Error, code: fault.MYNoRight, mysql: true,
	},
	{
		name: "my_gtid_never", spoil: []string{"SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE"}, source: []string{"snapshot: {mode: never}"},
		check: "gtid_mode", status: preflight.Warning, mysql: true,
	},
	{name: "my_retention", spoil: []string{"SET GLOBAL binlog_expire_logs_seconds = 3600"}, check: "retention", status: preflight.Warning},
	{name: "my_slave", spoil: []string{"REVOKE REPLICATION SLAVE ON *.* FROM {role}"}, check: "replication_slave", status: preflight.Error, code: fault.MYNoRight},
	{name: "my_client", spoil: []string{"REVOKE REPLICATION CLIENT ON *.* FROM {role}"}, check: "replication_client", status: preflight.Error, code: fault.MYNoRight},
	{name: "my_hidden", spoil: []string{"REVOKE SELECT ON {db}.* FROM {role}", "GRANT SELECT ON {db}.t TO {role}"}, check: "select", status: preflight.Warning},
	{name: "my_columns", tables: `["{db}.t"]`, spoil: []string{"REVOKE SELECT ON {db}.* FROM {role}", "GRANT SELECT (id) ON {db}.t TO {role}"}, check: "select", status: preflight.Error, code: fault.MYNoRight},
	{name: "my_unseen", tables: `["{db}.t", "{db}.u"]`, spoil: []string{"CREATE TABLE {db}.u (id int PRIMARY KEY)", "REVOKE SELECT ON {db}.* FROM {role}", "GRANT SELECT ON {db}.t TO {role}"}, check: "not_captured", status: preflight.Warning},
	{name: "my_engine", spoil: []string{"CREATE TABLE {db}.m (id int PRIMARY KEY) ENGINE = MyISAM"}, check: "not_captured", status: preflight.Warning},
	{name: "my_keyless", spoil: []string{"CREATE TABLE {db}.k (a int)"}, check: "key", status: preflight.Error, code: fault.SinkNoKey},
	{name: "my_unique", spoil: []string{"CREATE TABLE {db}.k (a int NOT NULL, b int, UNIQUE (a), UNIQUE (b))"}, check: "key", status: preflight.Error, code: fault.SinkNoKey},
	{name: "my_keyless_log", spoil: []string{"CREATE TABLE {db}.k (a int)"}, sink: []string{"mode: changelog"}, check: "key", status: preflight.Warning},
	{name: "my_charset", spoil: []string{"CREATE TABLE {db}.c (id int PRIMARY KEY, a varchar(20) CHARACTER SET swe7 NOT NULL DEFAULT 'x' COMMENT 'kept')"}, check: "types", status: preflight.Error, code: fault.MYTypeUndecodable},
	{name: "my_compressed", spoil: []string{"CREATE TABLE {db}.c (id int PRIMARY KEY, a text COMPRESSED)"}, check: "types", status: preflight.Error, code: fault.MYTypeUndecodable, maria: true},
	{
		name: "my_cascade", check: "cascades", status: preflight.Warning,
		spoil: []string{"CREATE TABLE {db}.child (id int PRIMARY KEY, t int, CONSTRAINT `of t` FOREIGN KEY (t) REFERENCES {db}.t (id) ON DELETE CASCADE ON UPDATE SET NULL)"},
	},
	{name: "my_packet", spoil: []string{"CREATE TABLE {db}.b (id int PRIMARY KEY, a longblob)", "SET GLOBAL max_allowed_packet = 1048576"}, group: "sources.db", check: "max_allowed_packet", status: preflight.Warning},
	{name: "my_packet_sink", spoil: []string{"SET GLOBAL max_allowed_packet = 1048576"}, group: "sinks.copy", check: "max_allowed_packet", status: preflight.Warning},

	{name: "my_rights", spoil: []string{"REVOKE INSERT, ALTER, CREATE TEMPORARY TABLES ON {target}.* FROM {role}"}, check: "rights", status: preflight.Error, code: fault.SinkMissingRight},
	{name: "my_no_right", spoil: []string{"REVOKE ALL PRIVILEGES ON {target}.* FROM {role}"}, check: "rights", status: preflight.Error, code: fault.SinkMissingRight},
	{name: "my_drop", sink: []string{"allow: [truncate]"}, check: "rights", status: preflight.Error, code: fault.SinkMissingRight},
	{name: "my_flush", spoil: []string{"SET GLOBAL innodb_flush_log_at_trx_commit = 2"}, check: "innodb_flush_log_at_trx_commit", status: preflight.Warning},
	{name: "my_sync", spoil: []string{"SET GLOBAL sync_binlog = 0"}, check: "sync_binlog", status: preflight.Warning},
	{name: "my_statement", spoil: []string{"SET GLOBAL binlog_format = 'STATEMENT'"}, group: "sinks.copy", check: "binlog_format", status: preflight.Error, code: fault.SinkSetting},
	{name: "my_require", spoil: []string{"SET GLOBAL sql_require_primary_key = ON"}, sink: []string{"mode: append"}, check: "require_primary_key", status: preflight.Error, code: fault.SinkSetting, mysql: true},
	{name: "my_force", spoil: []string{"SET GLOBAL innodb_force_primary_key = ON"}, sink: []string{"mode: changelog"}, check: "require_primary_key", status: preflight.Error, code: fault.SinkSetting, maria: true},
	{name: "my_filled", spoil: []string{"CREATE DATABASE {target}", "CREATE TABLE {target}.t (id int PRIMARY KEY, v varchar(20))", "INSERT INTO {target}.t VALUES (1, 'a')", "GRANT DROP ON {target}.* TO {role}"}, check: "table", status: preflight.Error, code: fault.SinkNotEmpty},
	{name: "my_target_engine", spoil: []string{"CREATE DATABASE {target}", "CREATE TABLE {target}.t (id int PRIMARY KEY, v varchar(20)) ENGINE = MyISAM"}, check: "engine", status: preflight.Error, code: fault.SinkEngine},
	{name: "my_target_key", spoil: []string{"CREATE DATABASE {target}", "CREATE TABLE {target}.t (id int, v varchar(20))"}, check: "key", status: preflight.Error, code: fault.SinkWrongKey},
	{
		name: "my_collation", check: "key", status: preflight.Error, code: fault.SinkWrongKey,
		spoil: []string{"CREATE TABLE {db}.s (id varchar(20) PRIMARY KEY)", "CREATE DATABASE {target}", "CREATE TABLE {target}.s (id varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)"},
	},
	{name: "my_generated", spoil: []string{"CREATE DATABASE {target}", "CREATE TABLE {target}.t (id int PRIMARY KEY, v varchar(20) GENERATED ALWAYS AS ('x') VIRTUAL)"}, check: "columns", status: preflight.Error, code: fault.SinkSchemaChange},
	{name: "my_required", spoil: []string{"CREATE DATABASE {target}", "CREATE TABLE {target}.t (id int PRIMARY KEY, v varchar(20), more int NOT NULL)"}, check: "columns", status: preflight.Error, code: fault.SinkConstraint},
	{
		name: "my_foreign", check: "ledger", status: preflight.Error, code: fault.JobLedgerForeign,
		spoil: []string{
			"CREATE DATABASE {target}", ledgerOfMySQL,
			"CREATE TABLE {target}.weir_ledger_log (job varchar(100), sink varchar(40), epoch bigint)",
			"CREATE TABLE {target}.weir_ledger_tables (job varchar(100), sink varchar(40), source varchar(500), target varchar(64), made tinyint, columns longtext)",
			"INSERT INTO {target}.weir_ledger VALUES ('my-foreign', 'copy', 'otherlife', 1, 5, 'd', '{}', now())",
		},
	},
}

func TestRemediesOfMySQL(t *testing.T) {
	t.Parallel()
	settings := maps.Clone(sound)
	settings["innodb_native_foreign_keys"] = "ON" // as all versions before 9.6
	remediesOf(t, harness.StartMySQL(t, harness.MySQLConfig{Settings: settings}))
}

func TestRemediesOfMariaDB(t *testing.T) {
	t.Parallel()
	my := harness.StartMariaDB(t, harness.MySQLConfig{Settings: sound})
	remediesOf(t, my)

	// A server without a log has to be started again, with the lines that the advice has.
	p := admitMy(t, my, "my_logless")
	restart := func(logs string) {
		t.Helper()
		my.Configure(map[string]string{"log_bin": logs})
		if err := my.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	restart("")
	found, _ := p.examine(t)
	bad := ill(found, "")
	if len(bad) != 1 || code(bad) != fault.MYNoBinlog || !bad[0].Remedy.Restart {
		t.Errorf("without a log%s", described(bad))
	}
	restart("binlog")
	if found, _ := p.examine(t); len(ill(found, "")) > 0 {
		t.Errorf("with a log%s", described(ill(found, "")))
	}
}

// commandsOf asks doctor and discover as a person does.
func commandsOf(t *testing.T, p *myPatient) {
	t.Helper()
	m := mesh.Up(t, []string{"SOURCE_URL=" + p.my.URLAs(p.role, ""), "TARGET_URL=" + p.my.URLAs(p.role, "")})
	file := m.File(t, p.name+".yaml", p.yaml())
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"doctor", file}, "0 errors, 0 warnings"},
		{[]string{"doctor", file, "--fix"}, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `" + p.name + "`@`%`;"},
		{[]string{"discover", file}, p.name + ".t"},
		{[]string{"discover", "${SOURCE_URL}"}, p.name + ".t"},
	} {
		if a := m.Ask(t, c.args...); a.Exit != 0 || !strings.Contains(a.Stdout, c.want) || strings.Contains(a.Stdout, p.role.Password) {
			t.Errorf("%q: exit %d, without %q:\n%s%s", c.args, a.Exit, c.want, a.Stdout, a.Stderr)
		}
	}
}

// remediesOf makes each thing wrong, executes what the doctor prints, and asks again. Settings belong to the server, so one is
// made well before the next is made wrong.
func remediesOf(t *testing.T, my *harness.MySQL) {
	t.Helper()
	well := admitMy(t, my, "my_well")
	before := well.state(t)
	found, grants := well.examine(t)
	if bad := ill(found, ""); len(bad) > 0 {
		t.Fatalf("nothing is wrong, and found is%s", described(bad))
	}
	if after := well.state(t); after != before {
		t.Errorf("tables were %s, are %s", before, after)
	}
	bare := &myPatient{my: my, name: "my_well", tables: well.tables, role: well.role}
	bare.exec(t, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM {role}")
	bare.exec(t, lines(grants)...)
	if found, _ := bare.examine(t); len(ill(found, "")) > 0 {
		t.Errorf("after the grants of --fix:\n%s%s", grants, described(ill(found, "")))
	}
	commandsOf(t, bare)
	for _, tt := range myCases {
		if (tt.mysql && my.MariaDB()) || (tt.maria && !my.MariaDB()) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			p := admitMy(t, my, tt.name)
			p.source, p.sink = tt.source, tt.sink
			if tt.tables != "" {
				p.tables = tt.tables
			}
			p.exec(t, tt.spoil...)
			bad := p.ill(t, tt.group, tt.check)
			if len(bad) != 1 || bad[0].Status != tt.status || code(bad) != tt.code {
				t.Fatalf("want one %s of %s with code %q; found are%s", tt.status, tt.check, tt.code, described(p.ill(t, "", "")))
			}
			if tt.name == "my_statement" {
				p.refused(t, tt.code)
			}
			p.treat(t, bad[0])
			if left := p.ill(t, tt.group, tt.check); len(left) > 0 {
				t.Errorf("after%s\nstill%s", described(bad), described(left))
			}
		})
	}
}
