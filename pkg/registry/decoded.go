package registry

import (
	"bytes"
	"maps"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
)

// decoded remembers heads, so that reading all of them again each second costs nothing for those that rest. A record is the
// same one only when revision and bytes are: a bucket that was made anew counts revisions from the start. The zero value is
// empty.
type decoded struct {
	mu   sync.Mutex
	last map[string]decodedHead // by job
}

type decodedHead struct {
	key   string
	value []byte
	view  job.View
}

// decode is [DecodeHead] with memory.
func (d *decoded) decode(e bus.Entry) (job.View, error) {
	name, _, _ := JobOf(e.Key)
	d.mu.Lock()
	defer d.mu.Unlock()
	if old, ok := d.last[name]; ok && old.key == e.Key && old.view.Revision == e.Revision && bytes.Equal(old.value, e.Value) {
		v := old.view
		v.At = time.Now()
		return v, nil
	}
	v, err := DecodeHead(e)
	if err != nil {
		return v, err
	}
	if d.last == nil {
		d.last = make(map[string]decodedHead)
	}
	d.last[name] = decodedHead{key: e.Key, value: e.Value, view: v}
	return v, nil
}

// keep forgets all jobs but these.
func (d *decoded) keep(views map[string]job.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.last, func(name string, _ decodedHead) bool {
		_, there := views[name]
		return !there
	})
}
