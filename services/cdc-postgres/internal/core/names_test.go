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
		word := rapid.StringMatching(`[a-z][a-z0-9-]{0,31}`)
		o := Owner{Job: word.Draw(t, "job"), Source: word.Draw(t, "source"), Life: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "life")}
		f := fence.Token(rapid.Uint64Min(1).Draw(t, "fence"))
		name := o.Slot(f)
		if len(name) > 63 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Fatalf("slot name %q", name)
		}
		if !o.Owns(name) || o.Fence(name) != f || !o.Owns(o.Publication()) {
			t.Fatalf("slot %q is not found to be ours with fence %s", name, f)
		}
		if life, ok := LifeOf(o.Publication()); !ok || life != o.Life {
			t.Fatalf("%q is of life %q, %t", o.Publication(), life, ok)
		}
		if life, ok := LifeOf(name); f < 1e15 && (!ok || life != o.Life) {
			t.Fatalf("%q is of life %q, %t", name, life, ok)
		}
		other := o
		if rapid.Bool().Draw(t, "another life") {
			other.Life = rapid.StringMatching(`[0-9a-f]{16}`).Filter(func(s string) bool { return s != o.Life }).Draw(t, "other life")
		} else {
			other.Source = word.Filter(func(s string) bool { return s != o.Source }).Draw(t, "other source")
		}
		if other.Owns(name) || other.Publication() == o.Publication() {
			t.Fatalf("slot %q belongs to %+v too", name, other)
		}
	})
}

func TestNamesOfSlots(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Owner{
		"weir_shop_db_5f3a9c1e5f3a9c1e":              {"shop", "db", "5f3a9c1e5f3a9c1e"},
		"weir_my_shop_db_2_5f3a9c1e5f3a9c1e":         {"my-shop", "db-2", "5f3a9c1e5f3a9c1e"},
		"weir_warehouse_o_5a9b89d0_5f3a9c1e5f3a9c1e": {"warehouse-of-everything", "orders", "5f3a9c1e5f3a9c1e"},
		"weir_warehouse_o_4ee2c93b_5f3a9c1e5f3a9c1e": {"warehouse-of-everything", "items", "5f3a9c1e5f3a9c1e"},
	} {
		if got := o.Publication(); got != want {
			t.Errorf("%+v has %q, want %q", o, got, want)
		}
	}
}

func TestForeignSlotsAreNotOurs(t *testing.T) {
	t.Parallel()
	o := Owner{"shop", "db", "5f3a9c1e5f3a9c1e"}
	base := o.Publication()
	for _, name := range []string{
		"", "weir_shop", "weir_shop_db", "weir_shop_5f3a9c1e5f3a9c1e", "weir_shop_db_2_5f3a9c1e5f3a9c1e", base + "_", base + "_x", base + "_01",
		base + "_1_2", "x" + base,
	} {
		if o.Owns(name) {
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
