package core

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/fence"
)

func TestSlotNamesAreNamesOfSlots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		job := rapid.StringMatching(`[a-z][a-z0-9-]{0,31}`).Draw(t, "job")
		life := rapid.StringMatching(`[0-9a-f]{8,16}`).Draw(t, "life")
		f := fence.Token(rapid.Uint64Min(1).Draw(t, "fence"))
		name := SlotName(job, life, f)
		if len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Fatalf("slot name %q", name)
		}
		if !OwnsSlot(job, life, name) || SlotFence(job, life, name) != f || !OwnsSlot(job, life, BaseName(job, life)) {
			t.Fatalf("slot %q is not found to be ours with fence %s", name, f)
		}
		other := rapid.StringMatching(`[0-9a-f]{8,16}`).Filter(func(s string) bool { return s != life }).Draw(t, "other life")
		if OwnsSlot(job, other, name) {
			t.Fatalf("slot %q belongs to life %s too", name, other)
		}
	})
}

func TestForeignSlotsAreNotOurs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "weir_shop", "weir_shop_ab", "weir_shop_abcd_", "weir_shop_abcd_x", "weir_shop_abcd_01", "weir_shop_abcd_1_2", "xweir_shop_abcd"} {
		if OwnsSlot("shop", "abcd", name) {
			t.Errorf("slot %q is taken for ours", name)
		}
	}
}

func TestSessionNamesKeepTheFence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Session{
			Life:   rapid.StringMatching(`[0-9a-f]{8,16}`).Draw(t, "life"),
			Vertex: rapid.StringMatching(`[a-z][a-z0-9-]{0,31}(_enum)?`).Draw(t, "vertex"),
			Fence:  fence.Token(rapid.Uint64Min(1).Draw(t, "fence")),
		}
		name := s.String()
		got, ok := ParseSession(name)
		if len(name) > 63 || !ok || got.Life != s.Life || got.Fence != s.Fence {
			t.Fatalf("session %q reads back as %+v, %t", name, got, ok)
		}
	})
}

func TestSupersedesOnlyOlderOfTheSameLife(t *testing.T) {
	t.Parallel()
	me := Session{Life: "ab", Vertex: "db", Fence: 5}
	for name, want := range map[string]bool{
		"weir:ab:db:4": true, "weir:ab:other:1": true, "weir:ab:db:5": false, "weir:ab:db:6": false, "weir:cd:db:4": false,
		"weir:ab:db:": false, "weir:ab": false, "psql": false, "": false, "weir:ab:db:04": false,
	} {
		if got := me.Supersedes(name); got != want {
			t.Errorf("Supersedes(%q) = %t", name, got)
		}
	}
	if last := (Session{Life: "ab", Vertex: "db", Fence: math.MaxUint64}); !last.Supersedes(me.String()) {
		t.Error("the last fence does not supersede")
	}
}
