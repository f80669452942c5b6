package bus_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

func claim(t *testing.T, c *bus.Conn, sink string, f fence.Token) uint64 {
	t.Helper()
	got, err := c.ClaimDLQ(t.Context(), "shop", sink, f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestALetterIsThereOnce(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	if err := c.EnsureDLQ(t.Context(), "shop", 1<<20); err != nil {
		t.Fatal(err)
	}
	held := claim(t, c, "wh", 1)
	letter := bus.DLQSubject("shop", "wh", "public.orders", 9, 3)
	for _, text := range []string{"first", "repeat"} {
		if err := c.PutDeadLetter(t.Context(), letter, held, bus.Header{"Weir-Table": {"public.orders"}}, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.DeadLetters(t.Context(), "shop")
	if err != nil || len(all) != 1 || all[0].Key != letter || all[0].Header.Get("Weir-Table") != "public.orders" {
		t.Fatalf("letters %v, %v", all, err)
	}
	one, err := c.DeadLetter(t.Context(), letter)
	if err != nil || string(one.Value) != "repeat" {
		t.Errorf("letter %q, %v", one.Value, err)
	}
	counts, err := c.CountLetters(t.Context(), "shop")
	if err != nil || len(counts) != 1 || counts["wh"] != 1 {
		t.Errorf("counts %v, %v", counts, err)
	}
	for range 2 {
		if err := c.DiscardDeadLetter(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.DeadLetter(t.Context(), letter); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("after discard: %v, want ErrNotFound", err)
	}
}

// I8: once a newer attempt has claimed, the server takes no letter of an older one, whatever that one believes.
func TestOnlyTheClaimantWritesLetters(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	if err := c.EnsureDLQ(t.Context(), "shop", 0); err != nil {
		t.Fatal(err)
	}
	old, other := claim(t, c, "wh", 3), claim(t, c, "lake", 3)
	now := claim(t, c, "wh", 4)
	put := func(sink string, held uint64, index int) error {
		return c.PutDeadLetter(t.Context(), bus.DLQSubject("shop", sink, "s.t", 9, index), held, nil, []byte("x"))
	}
	if err := put("wh", old, 1); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("letter of an older attempt: %v, want ErrConflict", err)
	}
	if _, err := c.ClaimDLQ(t.Context(), "shop", "wh", 3); !errors.Is(err, fence.ErrFenced) {
		t.Errorf("claim of an older attempt: %v, want fenced", err)
	}
	if err := errors.Join(put("wh", now, 2), put("lake", other, 5)); err != nil {
		t.Error(err)
	}
	again := claim(t, c, "wh", 4) // the same attempt, after a lost connection
	if err := put("wh", again, 10); err != nil {
		t.Error(err)
	}
	found, err := c.EpochLetters(t.Context(), "shop", "wh", 9)
	slices.Sort(found)
	want := []string{bus.DLQSubject("shop", "wh", "s.t", 9, 10), bus.DLQSubject("shop", "wh", "s.t", 9, 2)}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("epoch 9 has %v, %v; want %v", found, err, want)
	}
}

func TestAFullStreamTakesClaimsAndKeepsItsBound(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	const limit = 2000
	if err := c.EnsureDLQ(t.Context(), "shop", limit); err != nil {
		t.Fatal(err)
	}
	held := claim(t, c, "wh", 9)
	n := 0
	for ; ; n++ {
		err := c.PutDeadLetter(t.Context(), bus.DLQSubject("shop", "wh", "s.t", 1, n), held, nil, make([]byte, 100))
		if errors.Is(err, bus.ErrFull) {
			break
		}
		if err != nil || n > limit/100 {
			t.Fatalf("letter %d: %v", n, err)
		}
	}
	held = claim(t, c, "wh", 10)
	if err := c.EnsureDLQ(t.Context(), "shop", 1<<30); err != nil {
		t.Fatal(err)
	}
	put := func() error {
		return c.PutDeadLetter(t.Context(), bus.DLQSubject("shop", "wh", "s.t", 2, 0), held, nil, make([]byte, 100))
	}
	if err := put(); !errors.Is(err, bus.ErrFull) {
		t.Errorf("a bound that was there was changed: %v", err)
	}
	if err := c.DiscardDeadLetter(t.Context(), bus.DLQSubject("shop", "wh", "s.t", 1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := put(); err != nil {
		t.Errorf("after a discard: %v", err)
	}
}

func TestAJobWithoutAStreamHasNoLetters(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	if all, err := c.DeadLetters(t.Context(), "shop"); err != nil || len(all) != 0 {
		t.Errorf("letters %v, %v", all, err)
	}
	if counts, err := c.CountLetters(t.Context(), "shop"); err != nil || len(counts) != 0 {
		t.Errorf("counts %v, %v", counts, err)
	}
	if _, err := c.DeadLetter(t.Context(), bus.DLQSubject("shop", "wh", "s.t", 1, 0)); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a letter: %v, want ErrNotFound", err)
	}
	if _, err := c.ClaimDLQ(t.Context(), "shop", "wh", 1); !errors.Is(err, bus.ErrStreamGone) {
		t.Errorf("a claim: %v, want ErrStreamGone", err)
	}
	for range 2 {
		if err := c.DropDLQ(t.Context(), "shop"); err != nil {
			t.Error(err)
		}
	}
}

func TestLetterSubjectsComeApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		job, sink, table := rapid.String().Draw(t, "job"), rapid.String().Draw(t, "sink"), rapid.String().Draw(t, "table")
		e, n := epoch.ID(rapid.Uint64Range(1, 1<<40).Draw(t, "epoch")), rapid.IntRange(0, 1<<30).Draw(t, "index")
		j, s, tb, ep, i, err := bus.ParseDLQSubject(bus.DLQSubject(job, sink, table, e, n))
		if err != nil || j != job || s != sink || tb != table || ep != e || i != n {
			t.Fatalf("%q %q %q %d %d, %v", j, s, tb, ep, i, err)
		}
	})
}
