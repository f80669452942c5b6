package sinktest

import (
	"errors"
	"fmt"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// Run runs the suite. open gives each case an empty target of its own.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	for _, c := range []struct {
		name    string
		writers int
		run     func(w *world)
	}{
		{"one key many times", 2, oneKeyManyTimes},
		{"delete and insert in one epoch", 2, deleteAndInsert},
		{"key change", 2, keyChange},
		{"partial updates", 2, partialUpdates},
		{"key change with columns not sent", 1, moves},
		{"key change with columns not sent, two writers", 2, movesApart},
		{"truncate", 2, truncate},
		{"schema change in an epoch", 2, schemaChange},
		{"empty epochs", 2, emptyEpochs},
		{"skipped epochs are subsumed", 2, skippedEpochs},
		{"many tiny epochs", 1, tinyEpochs},
		{"epoch of many pieces", 2, bigEpoch},
		{"several epochs wait for the committer", 2, lateCommits},
		{"zombie committer (I8)", 2, zombie},
		{"ledger off the chain", 1, offTheChain},
		{"another life", 1, anotherLife},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newWorld(t, open(t), c.writers))
		})
	}
	dead(t, open)
	for _, call := range []string{"write", "stage", "claim", "commit"} {
		for _, when := range []string{"before", "after"} {
			t.Run("three crashes "+when+" "+call+" (I13)", func(t *testing.T) {
				t.Parallel()
				crashes(newWorld(t, open(t), 2), call, when)
			})
		}
	}
}

func (w *world) orders(changes ...change) *rows.Batch {
	w.t.Helper()
	return w.feed.batch(w.t, w.schemas.orders, changes...)
}

func (w *world) items(changes ...change) *rows.Batch {
	w.t.Helper()
	return w.feed.batch(w.t, w.schemas.items, changes...)
}

// fill commits n orders and items with ids from 1.
func (w *world) fill(n int64) {
	w.t.Helper()
	var changes []change
	for id := int64(1); id <= n; id++ {
		changes = append(changes, change{rows.OpRead, id, fmt.Sprintf("it's \"%d\"\\", id), id})
	}
	w.epoch(w.orders(changes...), w.items(changes...))
}

func oneKeyManyTimes(w *world) {
	w.run()
	w.fill(3)
	batch := []change{{rows.OpInsert, 100, "new", 0}}
	for i := range int64(100) {
		batch = append(batch, change{rows.OpUpdateAfter, 100, fmt.Sprint("u", i), i}, change{rows.OpUpdateAfter, 2, fmt.Sprint("v", i), i})
	}
	w.epoch(w.orders(batch[:50]...), w.orders(batch[50:]...))
}

func deleteAndInsert(w *world) {
	w.run()
	w.fill(5)
	w.epoch(w.orders(
		change{rows.OpDelete, 1, "", 0}, change{rows.OpInsert, 1, "again", 10},
		change{rows.OpInsert, 6, "short", 1}, change{rows.OpDelete, 6, "", 0},
		change{rows.OpDelete, 2, "", 0}, change{rows.OpInsert, 2, "back", 1}, change{rows.OpDelete, 2, "", 0},
		change{rows.OpUpdateAfter, 3, "-", 7},
	))
	w.epoch(w.orders(change{rows.OpInsert, 2, "a third time", 1}, change{rows.OpInsert, 6, "really", 2}))
	w.epoch(w.orders(change{rows.OpDelete, 2, "", 0}, change{rows.OpDelete, 77, "", 0}))
}

// A key change is a delete and an insert; the two may belong to different writers.
func keyChange(w *world) {
	w.run()
	w.fill(20)
	var changes []change
	for id := int64(1); id <= 20; id++ {
		changes = append(changes, change{rows.OpDelete, id, "", 0}, change{rows.OpInsert, id + 10, fmt.Sprint("moved from ", id), id})
	}
	// Downwards first, as a source that moves keys one by one has to.
	for i, j := 0, len(changes)-2; i < j; i, j = i+2, j-2 {
		changes[i], changes[j] = changes[j], changes[i]
		changes[i+1], changes[j+1] = changes[j+1], changes[i+1]
	}
	w.epoch(w.orders(changes...))
}

func partialUpdates(w *world) {
	w.run()
	if w.f.Spec.Mode == spec.Append {
		err := w.attempt.writers[0].Write(w.t.Context(), *w.orders(change{rows.OpUpdateAfter, 1, "?", 1}))
		if w.f.Read != nil && fault.CodeOf(err) != fault.SinkPartialImage {
			w.t.Errorf("append of a row that lacks a column: %v", err)
		}
		return
	}
	w.fill(5)
	w.epoch(w.orders(
		change{rows.OpUpdateAfter, 1, "?", 11}, change{rows.OpUpdateAfter, 2, "?", 12}, // not sent: as it was
		change{rows.OpInsert, 6, "whole", 1}, change{rows.OpUpdateAfter, 6, "?", 2}, // completed from the epoch
		change{rows.OpUpdateAfter, 3, "?", 13}, change{rows.OpUpdateAfter, 3, "whole", 14},
	))
	if w.f.Spec.Mode != spec.Upsert || w.f.Read == nil {
		return
	}
	w.write(w.orders(change{rows.OpUpdateAfter, 4711, "?", 1}))
	w.stage()
	w.seal()
	_, err := w.attempt.committer.Commit(w.t.Context(), w.durable[0])
	if fault.CodeOf(err) != fault.SinkPartialMiss {
		w.t.Errorf("partial update of a row that is not there: %v", err)
	}
	w.check("after a refused commit")
}

// A key changes while a column is not sent: delete and insert follow each other, and the insert takes the column from
// the row that the delete has taken away, wherever that was last seen.
func moves(w *world) {
	w.run()
	if w.f.Spec.Mode == spec.Append {
		return // as for any row that lacks columns
	}
	w.fill(6)
	move := func(from, to, amount int64) []change {
		return []change{{rows.OpDelete, from, "", 0}, {rows.OpInsert, to, "?", amount}}
	}
	var changes []change
	changes = append(changes, move(1, 11, 21)...) // from the target
	changes = append(changes, change{rows.OpUpdateAfter, 2, "of this epoch", 22})
	changes = append(changes, move(2, 12, 23)...)  // from the epoch
	changes = append(changes, move(3, 13, 24)...)  // twice,
	changes = append(changes, move(13, 23, 25)...) // from the target under the first key
	changes = append(changes, move(4, 1, 26)...)   // to a key that another row has left
	w.epoch(w.orders(changes...))
	w.epoch(w.orders(append(move(23, 3, 27), move(5, 23, 28)...)...))
}

// With several writers the two rows of such a change may go to different ones, and no writer can put the row together:
// a sink that folds changes by key stops with SINK_PARTIAL_MISS, and the target is as it was.
func movesApart(w *world) {
	w.run()
	if w.f.Spec.Mode != spec.Upsert || w.f.Read == nil {
		return
	}
	w.fill(3)
	for to := int64(100); to < 200; to++ {
		parts := w.attempt.split.Split(w.orders(change{rows.OpDelete, 1, "", 0}, change{rows.OpInsert, to, "?", 1}))
		if parts[0] == nil || parts[1] == nil {
			continue
		}
		var errs []error
		for i, x := range w.attempt.writers {
			err := x.Write(w.t.Context(), *parts[i])
			if err == nil {
				_, err = x.Stage(w.t.Context(), w.next)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) != 1 || fault.CodeOf(errs[0]) != fault.SinkPartialMiss {
			w.t.Errorf("delete and insert at two writers: %v", errs)
		}
		w.check("after a change that no writer could put together")
		return
	}
	w.t.Fatal("all keys go to one writer")
}

func truncate(w *world) {
	w.run()
	w.fill(10)
	gone := w.orders(change{rows.OpUpdateAfter, 1, "swallowed", 1}, change{rows.OpTruncate, 0, "", 0}, change{rows.OpInsert, 2, "after", 1})
	if w.f.Spec.Mode == spec.Upsert && !w.f.Truncates {
		if w.f.Read == nil {
			return
		}
		if err := w.attempt.writers[0].Write(w.t.Context(), *gone); fault.CodeOf(err) != fault.SinkTruncateRefused {
			w.t.Errorf("a truncate without leave: %v", err)
		}
		return
	}
	if w.f.Spec.Mode == spec.Changelog {
		return // its row has no key, so the model has nothing to compare it by; see the sinks' own tests
	}
	// The rows of a skipped epoch before the truncate are swallowed too.
	w.write(w.orders(change{rows.OpInsert, 50, "swallowed", 1}, change{rows.OpInsert, 51, "swallowed", 1}))
	w.stage()
	w.skip()
	w.epoch(gone, w.items(change{rows.OpInsert, 60, "stays", 1}))
}

func schemaChange(w *world) {
	w.run()
	w.fill(5)
	wider := func(changes ...change) *rows.Batch { return w.feed.batch(w.t, w.schemas.ordersWider, changes...) }
	w.epoch(
		w.orders(change{rows.OpUpdateAfter, 1, "old form", 1}, change{rows.OpInsert, 7, "old form", 1}),
		wider(change{rows.OpUpdateAfter, 1, "new form", 1 << 40}, change{rows.OpInsert, 8, "new form", 1 << 41}),
	)
	w.crash()
	w.run()
	w.epoch(wider(change{rows.OpUpdateAfter, 2, "new form", 1 << 42}))
}

func emptyEpochs(w *world) {
	w.run()
	for range 3 {
		w.epoch()
	}
	w.fill(2)
	w.epoch()
	w.crash()
	w.run()
	w.epoch()
	w.epoch(w.items(change{rows.OpInsert, 9, "x", 9}))
}

func skippedEpochs(w *world) {
	w.run()
	w.fill(3)
	for i := range int64(4) {
		w.write(w.orders(change{rows.OpUpdateAfter, 1, fmt.Sprint("skip ", i), i}, change{rows.OpInsert, 10 + i, "skipped", i}))
		w.stage()
		w.skip()
	}
	w.epoch(w.orders(change{rows.OpDelete, 10, "", 0}, change{rows.OpUpdateAfter, 11, "kept", 1}))
}

func tinyEpochs(w *world) {
	w.run()
	read := w.f.Read
	w.f.Read = nil // reading after each proves no more than reading at the end
	n := w.f.TinyEpochs
	if n == 0 {
		n = 1000
	}
	for i := range int64(n) {
		w.epoch(w.orders(change{rows.OpInsert, i, "tiny", i}))
	}
	w.f.Read = read
	w.check("after many epochs")
}

// An epoch of many pieces has keys in several of them; a big one does not fit into one Write either.
func bigEpoch(w *world) {
	w.run()
	w.fill(10)
	var batches []*rows.Batch
	for round := range int64(6) {
		var changes []change
		for id := int64(1); id <= 300; id++ {
			op := rows.OpUpdateAfter
			if round == 0 && id > 10 {
				op = rows.OpInsert
			}
			changes = append(changes, change{op, id, fmt.Sprintf("%010000d", id*round), round})
		}
		batches = append(batches, w.orders(changes...), w.items(change{rows.OpInsert, 1000 + round, "small", round}))
	}
	w.epoch(batches...)
}

func lateCommits(w *world) {
	w.run()
	for i := range int64(3) {
		w.write(w.orders(change{rows.OpInsert, i, "first", i}, change{rows.OpUpdateAfter, 0, fmt.Sprint("at ", i), i}))
		w.stage()
		w.seal()
	}
	w.commit()
	for i := range int64(2) {
		w.write(w.orders(change{rows.OpUpdateAfter, 0, fmt.Sprint("again ", i), i}))
		w.stage()
		w.seal()
	}
	w.crash()
	w.run()
}

func zombie(w *world) {
	if !w.keepsLedger() {
		return
	}
	w.run()
	w.fill(3)
	w.write(w.orders(change{rows.OpUpdateAfter, 1, "durable", 1}))
	w.stage()
	w.seal()
	old := w.attempt.committer
	w.crash()
	w.start()
	if _, err := w.attempt.committer.Claim(w.t.Context()); err != nil {
		w.t.Fatalf("claim: %v", err)
	}
	for i := range 4 {
		_, err := old.Commit(w.t.Context(), w.durable[0])
		// The successor may have ended the zombie's session, which it notices first.
		if !errors.Is(err, fault.Fenced) && (i > 0 || !errors.Is(err, fault.Transient)) {
			w.t.Errorf("the zombie's commit: %v, want fenced", err)
		}
		w.check("after a zombie's commit")
	}
	if _, err := old.Claim(w.t.Context()); !errors.Is(err, fault.Fenced) {
		w.t.Errorf("the zombie's claim: %v, want fenced", err)
	}
	w.commit()
	w.epoch(w.orders(change{rows.OpUpdateAfter, 1, "later", 1}))
}

func offTheChain(w *world) {
	if !w.keepsLedger() {
		return
	}
	w.run()
	w.fill(3)
	w.write(w.orders(change{rows.OpUpdateAfter, 1, "never", 1}))
	w.stage()
	w.seal()
	good := w.durable[0]
	for name, spoil := range map[string]func(prev *epoch.Ref){
		"a gap":        func(p *epoch.Ref) { p.Epoch++ },
		"other digest": func(p *epoch.Ref) { p.Digest = "somebody else's" },
		"no history":   func(p *epoch.Ref) { *p = epoch.Ref{} },
	} {
		bad := good
		spoil(&bad.Prev)
		if _, err := w.attempt.committer.Commit(w.t.Context(), bad); fault.CodeOf(err) != fault.JobLedgerDiverged {
			w.t.Errorf("%s: %v, want LEDGER_DIVERGED", name, err)
		}
		w.check("after a refused commit")
	}
	w.commit()
	// The same epoch with another digest is another history.
	bad := good
	bad.Ref.Digest = "somebody else's"
	if _, err := w.attempt.committer.Commit(w.t.Context(), bad); fault.CodeOf(err) != fault.JobLedgerDiverged {
		w.t.Errorf("other digest of the epoch: %v, want LEDGER_DIVERGED", err)
	}
	w.check("after a refused commit")
}

func anotherLife(w *world) {
	if !w.keepsLedger() {
		return
	}
	w.run()
	w.fill(3)
	cfg := w.config(plan.CommitterOf(w.f.Spec.Name), 0)
	cfg.Life, cfg.Fence = "another", w.fence+7
	c, err := w.f.Connector.OpenCommitter(w.t.Context(), cfg)
	if err == nil {
		_, err = c.Claim(w.t.Context())
		w.left = append(w.left, attempt{committer: c})
	}
	if !errors.Is(err, fault.Permanent) {
		w.t.Errorf("claim by another life: %v, want permanent", err)
	}
	w.epoch(w.orders(change{rows.OpUpdateAfter, 1, "still ours", 1}))
}

// keepsLedger is false for sinks that show nothing and therefore keep nothing.
func (w *world) keepsLedger() bool { return w.f.Read != nil }

// crashes lets the attempt die three times at one call of the second epoch.
func crashes(w *world, call, when string) {
	w.run()
	w.fill(4)
	second := func() []*rows.Batch {
		return []*rows.Batch{
			w.orders(change{rows.OpUpdateAfter, 1, "second", 2}, change{rows.OpInsert, 5, "second", 2}),
			w.items(change{rows.OpDelete, 2, "", 0}, change{rows.OpInsert, 6, "second", 2}),
		}
	}
	at := func(c, w string) bool { return c == call && w == when }
	sealed := false
	for range 3 {
		w.crash()
		w.start()
		if at("claim", "before") {
			continue
		}
		if call == "claim" {
			if _, err := w.attempt.committer.Claim(w.t.Context()); err != nil {
				w.t.Fatalf("claim: %v", err)
			}
			continue
		}
		if call == "commit" && sealed {
			if _, err := w.attempt.committer.Claim(w.t.Context()); err != nil {
				w.t.Fatalf("claim: %v", err)
			}
		} else {
			w.claim()
			if at("write", "before") {
				continue
			}
			w.write(second()...)
			if at("write", "after") || at("stage", "before") {
				continue
			}
			w.stage()
			if at("stage", "after") {
				continue
			}
			w.seal()
			sealed = true
		}
		if at("commit", "after") {
			if _, err := w.attempt.committer.Commit(w.t.Context(), w.durable[0]); err != nil {
				w.t.Fatalf("commit: %v", err)
			}
		}
	}
	w.crash()
	w.run()
	if !sealed {
		w.epoch(second()...)
	}
	w.epoch(w.orders(change{rows.OpUpdateAfter, 1, "third", 3}))
}
