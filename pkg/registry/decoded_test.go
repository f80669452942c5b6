package registry

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
)

// A head that has not changed is decoded once; the time of the reading is that of the last one. A bucket that was made anew may
// have other bytes under the same revision.
func TestHeadsAreDecodedOnce(t *testing.T) {
	entry := func(text string, revision uint64) bus.Entry {
		return bus.Entry{Key: bus.HeadKey("shop"), Value: []byte(text), Revision: revision}
	}
	var d decoded
	read := func(e bus.Entry) job.View {
		t.Helper()
		v, err := d.decode(e)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first := read(entry(`{"version":1,"job":"shop","fence":1}`, 7))
	before := time.Now()
	again := read(entry(`{"version":1,"job":"shop","fence":1}`, 7))
	if again.Head != first.Head || again.At.Before(before) || again.Revision != 7 {
		t.Errorf("read again: %+v, first %+v", again, first)
	}
	if v := read(entry(`{"version":1,"job":"shop","fence":2}`, 7)); v.Head.Fence != 2 {
		t.Errorf("other bytes under the same revision: fence %s", v.Head.Fence)
	}
	if v := read(entry(`{"version":1,"job":"shop","fence":2}`, 8)); v.Revision != 8 {
		t.Errorf("the same bytes under another revision: %d", v.Revision)
	}
	if _, err := d.decode(entry(`{"version":`, 9)); err == nil {
		t.Error("half a record was read")
	}
	d.keep(nil)
	if len(d.last) != 0 {
		t.Error("a job that is gone is remembered")
	}
}
