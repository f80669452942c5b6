package flows

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/copies"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/services/weir/verify/audit"
)

const (
	// copyRows is how many rows each of the five tables has at first; ITEST_COPY_ROWS is for longer runs.
	copyRows = 10_000
	// copyKills of processes, in turn of their kinds; ITEST_KILLS is for longer runs.
	copyKills = 8
	// copyRate is transactions a second, each of one to eight changes.
	copyRate = 120
)

// TestKillWhileTablesAreCopied kills processes of every kind, SIGKILL, while four readers on two nodes copy tables that
// are written to before, during and after: in the snapshot, at the hand-over, in the catch-up and in the stream. In the end
// the copy equals the source, row by row, and the changelog has every row once, as read or as change.
func TestKillWhileTablesAreCopied(t *testing.T) {
	seed := rig.Seed(t)
	rows := harness.Number(t, "ITEST_COPY_ROWS", copyRows)
	g := &goods{rng: rand.New(rand.NewPCG(seed, 1)), Rig: &rig.Rig{
		Source: harness.StartPostgres(t, harness.PostgresConfig{}),
		Target: harness.StartPostgres(t, harness.PostgresConfig{}),
	}}
	source := connection(t, g.Source)
	g.target = connection(t, g.Target)
	if err := copies.Fill(t.Context(), source, rows); err != nil {
		t.Fatal(err)
	}
	for _, table := range copies.Keyed() {
		g.names = append(g.names, table.Name)
	}
	var err error
	if g.load, err = copies.Open(t.Context(), func(ctx context.Context) (*pgx.Conn, error) {
		return g.Source.Connect(ctx, "postgres")
	}, rows, copyRate, seed); err != nil {
		t.Fatal(err)
	}
	g.begin(t, "postgres", mesh.CDCPostgres, g.Source.URL("postgres"), 500)
	g.harm(t, append(slices.Clone(kinds[2:]), kinds[:2]...), copyKills) // the readers first: what they read is under way
	g.end(t)
	compareCopies(t, g.Rig)
	audited := func(schema string, table copies.Table) {
		read, changes, err := copies.Audit(t.Context(), source, g.target, schema, table)
		tested(t, table.Name, read, changes, err)
	}
	for _, table := range copies.Keyed() {
		audited("goods_log", table)
	}
	audited("goods_bare", copies.Bare())
}

func compareCopies(tb testing.TB, r *rig.Rig) {
	tb.Helper()
	var pairs []audit.TablePair
	for _, table := range copies.Keyed() {
		pairs = append(pairs, audit.TablePair{Source: copies.Schema + "." + table.Name, Target: "goods_copy." + table.Name})
	}
	outcomes, err := audit.CompareTables(tb.Context(), audit.CompareConfig{
		SourceURL: r.Source.URL("postgres"), TargetURL: r.Target.URL("postgres"), Tables: pairs, Values: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, c := range outcomes {
		if !c.Equal() {
			tb.Error(c)
		}
	}
}
