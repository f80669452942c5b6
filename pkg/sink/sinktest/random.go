package sinktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// Random holds a sink against the model through a history of random changes, epochs, crashes, zombies and meddling by others. The
// same seed makes the same history, but for where a commit is interrupted.
func Random(t *testing.T, f Fixture, seed uint64, steps int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, f, 1+rng.IntN(3))
	h := &history{w: w, rng: rng, source: newModel(spec.Upsert), durable: newModel(spec.Upsert)}
	w.run()
	for range steps {
		h.step()
	}
	w.stage()
	h.seal()
	w.commit()
}

// history is a source whose rows change at random.
type history struct {
	w   *world
	rng *rand.Rand
	// source and durable are the rows of the source now and at the newest durable epoch; wider and widerThen say which form orders have.
	source, durable  *model
	wider, widerThen bool
	text             int
}

// ids is how many keys a table has: few, so that most are used again.
const ids = 30

func (h *history) step() {
	w := h.w
	switch h.rng.IntN(20) {
	default:
		h.write()
	case 0, 13:
		w.stage()
		w.skip()
	case 1, 2:
		w.stage()
		h.seal()
	case 3, 4, 5, 6:
		w.stage()
		h.seal()
		w.commit()
	case 7:
		w.commit()
	case 8:
		h.crash()
		w.run()
	case 9:
		h.interrupt()
	case 10:
		h.zombie()
	case 11, 12:
		if w.f.Meddle != nil {
			w.f.Meddle(w.t, h.rng)
			w.check("after what others did")
		}
	}
}

func (h *history) seal() {
	h.w.seal()
	h.durable, h.widerThen = h.source.clone(), h.wider
}

func (h *history) crash() {
	h.w.crash()
	h.source, h.wider = h.durable.clone(), h.widerThen
}

// interrupt ends a commit somewhere, with the attempt or without.
func (h *history) interrupt() {
	w := h.w
	w.stage()
	h.seal()
	if len(w.durable) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(h.rng.IntN(40_000))*time.Microsecond)
	defer cancel()
	for len(w.durable) > 0 {
		if _, err := w.attempt.committer.Commit(ctx, w.durable[0]); err != nil {
			break // whatever has become of it
		}
		w.visible = w.visibles[0]
		w.durable, w.visibles = w.durable[1:], w.visibles[1:]
	}
	if h.rng.IntN(2) == 0 {
		h.crash()
		w.run()
		return
	}
	w.commit()
}

// zombie lets an attempt commit that has a successor.
func (h *history) zombie() {
	w := h.w
	w.stage()
	h.seal()
	if !w.keepsLedger() || len(w.durable) == 0 {
		return
	}
	old := w.attempt.committer
	h.crash()
	w.start()
	if _, err := w.attempt.committer.Claim(w.t.Context()); err != nil {
		w.t.Fatalf("claim: %v", err)
	}
	w.letters.hold(w.fence)
	for i := range 2 {
		_, err := old.Commit(w.t.Context(), w.durable[0])
		if !errors.Is(err, fault.Fenced) && (i > 0 || !errors.Is(err, fault.Transient)) {
			w.t.Errorf("the zombie's commit: %v, want fenced", err)
		}
	}
	w.check("after a zombie's commit")
	w.commit()
}

// write sends a few batches of changes.
func (h *history) write() {
	w := h.w
	if h.rng.IntN(20) == 0 {
		h.wider = true
	}
	for range 1 + h.rng.IntN(3) {
		schema := []*rows.Schema{w.schemas.orders, w.schemas.items, w.schemas.names}[h.rng.IntN(3)]
		if schema == w.schemas.orders && h.wider {
			schema = w.schemas.ordersWider
		}
		for range 1 + h.rng.IntN(8) {
			changes := h.changes(schema)
			if len(changes) == 0 {
				continue
			}
			b := w.feed.batch(w.t, schema, changes...)
			h.source.add(b)
			w.write(b)
		}
	}
}

// changes is one change of a table, which may be two rows.
func (h *history) changes(s *rows.Schema) []change {
	have := h.have(s)
	id := h.rng.Int64N(ids)
	row, there := have[id]
	if !there {
		return []change{{rows.OpInsert, id, h.word(), h.rng.Int64N(1000)}}
	}
	switch n := h.rng.IntN(20); {
	case n < 6:
		return []change{{rows.OpDelete, id, "", 0}}
	case n < 8 && h.w.f.Spec.Mode != spec.Append: // the text is not sent
		return []change{{rows.OpUpdateAfter, id, "?", h.rng.Int64N(1000)}}
	case n < 11:
		return h.move(have, id)
	case n == 11:
		return []change{{rows.OpRead, id, row.text, row.amount}}
	case n == 12 && h.rng.IntN(4) == 0 && h.w.f.Spec.Mode == spec.Upsert && h.w.f.Truncates:
		return []change{{rows.OpTruncate, 0, "", 0}}
	case n < 16:
		row.op = rows.OpUpdateBefore
		return []change{row, {rows.OpUpdateAfter, id, h.word(), h.rng.Int64N(1000)}}
	}
	return []change{{rows.OpUpdateAfter, id, h.word(), h.rng.Int64N(1000)}}
}

// move changes a row's key, with all columns or, where one writer has both rows, without the text.
func (h *history) move(have map[int64]change, id int64) []change {
	to := h.rng.Int64N(ids)
	if _, taken := have[to]; taken && to != id {
		return nil
	}
	text := h.word()
	if h.w.writers == 1 && h.w.f.Spec.Mode != spec.Append && h.rng.IntN(2) == 0 {
		text = "?"
	}
	return []change{{rows.OpDelete, id, "", 0}, {rows.OpInsert, to, text, h.rng.Int64N(1000)}}
}

// word is a text that is there once, or null.
func (h *history) word() string {
	if h.rng.IntN(10) == 0 {
		return "-"
	}
	h.text++
	return fmt.Sprint("text ", h.text)
}

// have are the rows of a table as changes that would make them.
func (h *history) have(s *rows.Schema) map[int64]change {
	t := h.source.tables[s.Table()]
	if t == nil {
		return nil
	}
	all := make(map[int64]change, len(t.current))
	for id := range int64(ids) {
		key := strconv.FormatInt(id, 10)
		if s == h.w.schemas.names {
			key = nameOf(id)
		}
		r, ok := t.current[key]
		if !ok {
			continue
		}
		c := change{op: rows.OpInsert, id: id, text: r.Cells["Name of it"]}
		if c.text == Null {
			c.text = "-"
		}
		c.amount, _ = strconv.ParseInt(r.Cells["amount"], 10, 64) // it is always a number
		all[id] = c
	}
	return all
}
