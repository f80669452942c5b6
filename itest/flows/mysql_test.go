package flows

import (
	"math/rand/v2"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/mycopies"
	"weir.dev/weir/itest/rig"
)

const (
	// mysqlRows is how many rows each table of a MySQL or MariaDB source has at first, and mysqlKills how many processes are
	// killed; ITEST_COPY_ROWS and ITEST_KILLS are for longer runs.
	mysqlRows  = 3_000
	mysqlKills = 6
	// mysqlRate is transactions a second, each of one to eight statements.
	mysqlRate = 80
)

// mysqlKinds are the processes that are killed in turn, those at work in the copy first.
var mysqlKinds = []string{string(mesh.CDCMySQL), string(mesh.Sink), "nats", string(mesh.Coordinator)}

// TestKillWhileMySQLIsCopied is [TestKillWhileTablesAreCopied] with MySQL as the source, whose snapshots say less about the
// log, and whose text keys are compared otherwise than by their bytes.
func TestKillWhileMySQLIsCopied(t *testing.T) {
	killWhileCopied(t, harness.StartMySQL(t, harness.MySQLConfig{}))
}

// TestKillWhileMySQLByPlaceIsCopied is the same without GTIDs, where places in files are all that there is.
func TestKillWhileMySQLByPlaceIsCopied(t *testing.T) {
	killWhileCopied(t, harness.StartMySQL(t, harness.MySQLConfig{NoGTID: true}))
}

// TestKillWhileMariaDBIsCopied is the same with MariaDB, whose GTIDs are by domain.
func TestKillWhileMariaDBIsCopied(t *testing.T) {
	killWhileCopied(t, harness.StartMariaDB(t, harness.MySQLConfig{}))
}

func killWhileCopied(t *testing.T, source *harness.MySQL) {
	seed := rig.Seed(t)
	rows := harness.Number(t, "ITEST_COPY_ROWS", mysqlRows)
	g := &goods{
		rng: rand.New(rand.NewPCG(seed, 1)), Rig: &rig.Rig{Target: harness.StartPostgres(t, harness.PostgresConfig{})},
	}
	g.target = connection(t, g.Target)
	if err := mycopies.Fill(t.Context(), source, rows); err != nil {
		t.Fatal(err)
	}
	for _, table := range mycopies.Keyed() {
		g.names = append(g.names, table.Name)
	}
	var err error
	if g.load, err = mycopies.Open(t.Context(), source, rows, mysqlRate, seed); err != nil {
		t.Fatal(err)
	}
	g.begin(t, "mysql", mesh.CDCMySQL, source.URL(""), max(100, rows/100)) // chunks enough for kills to fall between them
	g.harm(t, mysqlKinds, mysqlKills)
	g.end(t)
	audited := func(schema string, table mycopies.Table) {
		read, changes, err := mycopies.Audit(t.Context(), source, g.target, schema, table)
		tested(t, table.Name, read, changes, err)
	}
	for _, table := range mycopies.Keyed() {
		if n, err := mycopies.Compare(t.Context(), source, g.target, "goods_copy", table); err != nil || n == 0 {
			t.Errorf("%d rows of %s: %v", n, table.Name, err)
		}
		audited("goods_log", table)
	}
	audited("goods_bare", mycopies.Bare())
}
