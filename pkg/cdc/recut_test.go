package cdc

import (
	"slices"
	"testing"
)

// A table whose copy is under way goes on where it was; one of which nothing was read is cut anew, by the key it has now.
func TestRecut(t *testing.T) {
	t.Parallel()
	a := NewAssigner(Config{Mode: Initial, Readers: 1, ChunkRows: 10}, []Table{{ID: 1}, {ID: 2}, {ID: 3}})
	d := newDuo(t, a)
	d.bound(false, intKey(10), intKey(20)) // of table 1
	w, ok := d.share.Next()
	if !ok {
		t.Fatal("no chunk to read")
	}
	d.share.Finish(w.ChunkID, []byte("mark"), 10, nil)
	d.exchange()
	a, err := RestoreAssigner(Config{Mode: Initial, Readers: 1, ChunkRows: 10}, a.Snapshot(1).Head, inline{}, [][]byte{d.share.State(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[TableID][2]bool{1: {true, true}, 2: {true, false}, 3: {true, false}, 4: {false, false}} {
		if unread, begun := a.Unread(id); unread != want[0] || begun != want[1] {
			t.Errorf("table %d: unread %t, begun %t", id, unread, begun)
		}
	}
	a.Recut(Table{ID: 2, Keyless: true})
	if table := a.table(2); !table.Keyless || table.split != splitWaiting {
		t.Errorf("table 2 is %+v", table)
	}
	if n := len(a.queue); n == 0 {
		t.Error("the chunks of table 1 are gone")
	}
}

// A copy that is abandoned is not read to its end: the log is handed over without the table, pauses, and the table is emptied and
// read from its beginning.
func TestAbandon(t *testing.T) {
	t.Parallel()
	config := Config{Mode: Initial, Readers: 1, ChunkRows: 10}
	a := NewAssigner(config, []Table{{ID: 1}})
	d := newDuo(t, a)
	d.bound(false, intKey(10), intKey(20))
	w, ok := d.share.Next()
	if !ok {
		t.Fatal("no chunk to read")
	}
	d.share.Finish(w.ChunkID, []byte("mark"), 10, nil)
	d.exchange()
	a, err := RestoreAssigner(config, a.Snapshot(1).Head, inline{}, [][]byte{d.share.State(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if a.Abandon(2) || !a.Abandon(1) || !a.Abandon(1) {
		t.Error("Abandon does not know its tables")
	}
	if unread, begun := a.Unread(1); !unread || begun {
		t.Errorf("unread %t, begun %t", unread, begun)
	}
	if a, err = RestoreAssigner(config, a.Snapshot(2).Head, inline{}, nil); err != nil {
		t.Fatal(err)
	}
	if !a.Tables([]Table{{ID: 1}}) {
		t.Error("the log need not stand")
	}
	d = &duo{tb: t, a: a, share: NewShare(1)}
	d.exchange()
	d.settle()
	if _, ok := d.share.Next(); ok || len(d.asks) > 0 {
		t.Fatal("the abandoned copy is read on")
	}
	d.cover()
	if split, ok := d.share.Follow(); !ok || len(split.Tables) != 0 {
		t.Fatalf("the log is %+v, %t", split, ok)
	}
	if truncate, asked := d.share.Pausing(); !asked || !slices.Equal(truncate, []TableID{1}) {
		t.Fatalf("asked to pause: %t, %v", asked, truncate)
	}
	d.share.Paused()
	d.exchange()
	d.cover()
	d.settle()
	d.bound(true)
	d.read()
	d.cover()
	if split, ok := d.share.Follow(); !ok || len(split.Tables) != 1 || len(split.Tables[0].Chunks) != 1 {
		t.Fatalf("the log goes on with %+v, %t", split, ok)
	}
}
