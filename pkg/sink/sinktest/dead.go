package sinktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
)

// dead runs the cases of rows that the target can never take.
func dead(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	run := func(name string, do func(w *world)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			if f.Poison == nil {
				return
			}
			f.Spec.DLQ = true
			w := newWorld(t, f, 1)
			w.letters.room = -1
			do(w)
		})
	}
	run("poison rows become letters, the others apply", poisonRows)
	run("poison without dead letters stops the epoch", poisonStops)
	run("a letter without room waits", fullLetters)
	run("zombie with a letter in its hands (I8)", zombieLetters)
	for n := 1; n <= 3; n++ {
		for _, before := range []bool{true, false} {
			run(fmt.Sprintf("crash at letter %d, safe %t (I13)", n, !before), func(w *world) { crashAtLetter(w, n, before) })
		}
	}
	run("crash between letters and commit, and the target is healed (I13)", healedBetween)
}

// hundred are a hundred orders of which three are poisonous.
func (w *world) hundred() *rows.Batch {
	w.t.Helper()
	var changes []change
	for id := int64(1); id <= 100; id++ {
		amount := id
		if id == 7 || id == 50 || id == 77 {
			amount = Poisonous
		}
		changes = append(changes, change{rows.OpInsert, id, fmt.Sprint("row ", id), amount})
	}
	return w.orders(changes...)
}

// poisoned runs an attempt whose target refuses poisonous orders.
func (w *world) poisoned() (heal func()) {
	w.t.Helper()
	w.run()
	w.epoch(w.orders(change{rows.OpInsert, 1000, "first", 1}))
	heal = w.f.Poison(w.t, w.schemas.orders.Table())
	w.poison()
	return heal
}

func (w *world) poison() {
	for _, m := range []*model{w.sent, w.cut, w.visible} {
		m.poisoned = true
	}
}

// wantLetters compares the letters with the keys of rows that should have one.
func (w *world) wantLetters(keys ...string) {
	w.t.Helper()
	var got []string
	for _, l := range w.letters.sorted() {
		got = append(got, string(l.Key))
		if fault.CodeOf(l.Fault) == "" || l.Life != life || l.Sink != w.f.Spec.Name || len(l.Rows) == 0 {
			w.t.Errorf("letter %+v does not say why, whose, or what", l.LetterID)
		}
		var c struct {
			Op  string                     `json:"op"`
			Row map[string]json.RawMessage `json:"row"`
		}
		if err := json.Unmarshal(l.Change, &c); err != nil || c.Op != l.Op || string(c.Row["amount"]) != fmt.Sprint(Poisonous) {
			w.t.Errorf("letter %+v holds %s, %v", l.LetterID, l.Change, err)
		}
	}
	if !slices.Equal(got, keys) {
		w.t.Errorf("letters for %v, want %v", got, keys)
	}
}

func poisonRows(w *world) {
	heal := w.poisoned()
	w.epoch(w.hundred(), w.items(change{rows.OpInsert, 1, "another table", Poisonous + 1}))
	w.wantLetters(`{"id":7}`, `{"id":50}`, `{"id":77}`)
	w.epoch(w.orders(
		change{rows.OpUpdateAfter, 7, "good now", 1}, // what was put aside is overtaken
		change{rows.OpUpdateAfter, 8, "bad now", Poisonous},
		change{rows.OpDelete, 50, "", 0},
	))
	w.wantLetters(`{"id":7}`, `{"id":50}`, `{"id":77}`, `{"id":8}`)
	heal()
	w.crash()
	w.run()
	w.epoch(w.orders(change{rows.OpUpdateAfter, 9, "all well", 2}))
	w.wantLetters(`{"id":7}`, `{"id":50}`, `{"id":77}`, `{"id":8}`)
}

// poisonStops is O13 of the bug log: an epoch that the target refuses is not committed in part, and once the reason is gone
// all of its rows are there, once.
func poisonStops(w *world) {
	w.f.Spec.DLQ = false
	w.run()
	w.epoch(w.orders(change{rows.OpInsert, 1000, "first", 1}))
	heal := w.f.Poison(w.t, w.schemas.orders.Table())
	w.write(w.hundred())
	w.stage()
	w.seal()
	for range 2 {
		_, err := w.attempt.committer.Commit(w.t.Context(), w.durable[0])
		if code := fault.CodeOf(err); (code != fault.SinkConstraint && code != fault.SinkRow) || errors.Is(err, fault.Transient) {
			w.t.Errorf("commit of a poisonous row: %v, want a refusal for good", err)
		}
		w.check("after a refused commit")
	}
	heal()
	w.crash()
	w.run()
	if n := len(w.letters.all); n != 0 {
		w.t.Errorf("%d letters without dlq", n)
	}
}

func fullLetters(w *world) {
	w.poisoned()
	w.letters.room = 2
	w.write(w.hundred())
	w.stage()
	w.seal()
	for range 2 {
		_, err := w.attempt.committer.Commit(w.t.Context(), w.durable[0])
		if fault.CodeOf(err) != fault.SinkDLQFull || !errors.Is(err, fault.Transient) {
			w.t.Errorf("commit without room for a letter: %v, want SINK_DLQ_FULL", err)
		}
		w.check("after a commit that waits")
	}
	w.letters.room = 1
	w.commit()
	w.wantLetters(`{"id":7}`, `{"id":50}`, `{"id":77}`)
	w.letters.discard()
	w.epoch(w.orders(change{rows.OpUpdateAfter, 5, "bad now", Poisonous}))
	w.wantLetters(`{"id":5}`)
}

// A committer that was replaced while it put a row aside writes no letter: its successor may have applied the row.
func zombieLetters(w *world) {
	heal := w.poisoned()
	w.write(w.hundred())
	w.stage()
	w.seal()
	old, entered, leave := w.attempt.committer, make(chan struct{}), make(chan struct{})
	var once bool
	w.letters.stop = func() {
		if !once {
			once = true
			close(entered)
			<-leave
		}
	}
	result := make(chan error)
	go func() {
		_, err := old.Commit(context.WithoutCancel(w.t.Context()), w.durable[0])
		result <- err
	}()
	<-entered
	w.crash()
	w.start() // ends what the zombie has begun at the target
	heal()
	for _, m := range append([]*model{w.sent, w.cut}, w.visibles...) {
		m.poisoned = false
	}
	w.visibles[0].add(w.healed())
	w.cut, w.sent = w.visibles[0].clone(), w.visibles[0].clone()
	w.claim()
	close(leave)
	if err := <-result; err == nil {
		w.t.Error("the zombie committed")
	}
	w.wantLetters()
	w.check("after the zombie has come back")
}

// healed are the poisonous rows of hundred as a healed target takes them.
func (w *world) healed() *rows.Batch {
	w.t.Helper()
	all := w.hundred()
	return all.Gather([]int32{6, 49, 76})
}

func crashAtLetter(w *world, n int, before bool) {
	w.poisoned()
	w.write(w.hundred())
	w.stage()
	w.seal()
	w.letters.crash, w.letters.before = n, before
	if _, err := w.attempt.committer.Commit(w.t.Context(), w.durable[0]); !errors.Is(err, errDied) {
		w.t.Fatalf("commit: %v, want the crash", err)
	}
	w.check("after the crash")
	w.crash()
	w.run()
	w.wantLetters(`{"id":7}`, `{"id":50}`, `{"id":77}`)
	w.epoch(w.orders(change{rows.OpUpdateAfter, 1, "later", 3}))
}

// A row that has a letter stays out of its epoch even when the target would take it by now: it is in one place.
func healedBetween(w *world) {
	heal := w.poisoned()
	w.write(w.hundred())
	w.stage()
	w.seal()
	w.letters.crash = 3
	if _, err := w.attempt.committer.Commit(w.t.Context(), w.durable[0]); !errors.Is(err, errDied) {
		w.t.Fatalf("commit: %v, want the crash", err)
	}
	heal()
	w.crash()
	w.run()
	w.wantLetters(`{"id":7}`, `{"id":50}`, `{"id":77}`)
}

var _ sink.DeadLetters = heldLetters{}
