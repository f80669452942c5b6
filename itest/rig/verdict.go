package rig

import (
	"testing"

	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// Verdict closes the shop, waits until all of it has arrived and fails the test for every guarantee that does not hold:
//
//   - the copy equals the source, row by row;
//   - the changelog has every change once, with its values, in the order of its key, its transactions whole;
//   - each sink's ledger is contiguous, and no older attempt committed after a newer one;
//   - a reader never saw half a transaction, an epoch that was not durable, or a step back;
//   - the product's own audit of its history is clean.
func (r *Rig) Verdict(tb testing.TB) {
	tb.Helper()
	ctx := tb.Context()
	if err := r.close(); err != nil {
		tb.Fatalf("the shop's own load: %v", err)
	}
	r.Mesh.CaughtUp(tb, Job)
	for i, reader := range r.readers {
		if err := reader.Stop(); err != nil {
			tb.Error(err)
		}
		if reader.Looks() == 0 {
			tb.Errorf("reader %d never saw its target", i)
		}
		tb.Logf("reader %d looked %d times", i, reader.Looks())
	}
	r.compareCopy(tb)

	want, err := r.oracle.Changes(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	got, err := audit.Changelog(ctx, r.Target.URL("postgres"), "shop_log", "shop", changelogTables())
	if err != nil {
		tb.Fatal(err)
	}
	if len(want) == 0 {
		tb.Error("the oracle saw no changes")
	}
	if err := audit.Validate(got, want); err != nil {
		tb.Error(err)
	}
	tb.Logf("%d transactions, %d changes", r.Applied(), len(want))

	for _, sink := range []string{Copy, Log} {
		log, err := audit.Ledger(ctx, r.Target.URL("postgres"), "shop_"+sink, Job, sink)
		if err != nil {
			tb.Error(err)
			continue
		}
		if err := verdict.LedgerContiguous(log); err != nil {
			tb.Error(err)
		}
	}
	r.Mesh.Verify(tb, Job)
}

func (r *Rig) compareCopy(tb testing.TB) {
	tb.Helper()
	var pairs []audit.TablePair
	for _, table := range shop.Tables() {
		pairs = append(pairs, audit.TablePair{Source: "shop." + table, Target: "shop_copy." + table})
	}
	outcomes, err := audit.CompareTables(tb.Context(), audit.CompareConfig{
		SourceURL: r.Source.URL("postgres"), TargetURL: r.Target.URL("postgres"), Tables: pairs,
		Values: true, // invented people
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

func changelogTables() (all []audit.Table) {
	for _, name := range shop.Tables() {
		all = append(all, audit.Table{Name: name, Key: shop.Key(name)})
	}
	return all
}
