package cdc

import "testing"

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
