package control

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
)

// stored is a message of the event stream, a second younger than the one before it.
func stored(revision uint64, second int, body string) bus.Update {
	return bus.Update{Kind: bus.Put, Entry: bus.Entry{
		Key: "weir.event.shop.state", Value: []byte(body), Revision: revision, Time: time.Unix(int64(second), 0),
	}}
}

func TestEventsOfAWatch(t *testing.T) {
	t.Parallel()
	event := func(n int) string {
		return fmt.Sprintf(`{"kind":"state","job":"shop","term":%d,"fence":1,"reason":{"code":"X"}}`, n)
	}
	caughtUp, resync := bus.Update{Kind: bus.CaughtUp}, bus.Update{Kind: bus.Resync, Err: bus.ErrStalled}
	for name, tc := range map[string]struct {
		query   EventQuery
		updates []bus.Update
		want    []uint64 // by term
		done    bool
	}{
		"the past":        {EventQuery{}, []bus.Update{stored(1, 1, event(1)), stored(2, 2, event(2)), caughtUp}, []uint64{1, 2}, true},
		"nothing is kept": {EventQuery{}, []bus.Update{caughtUp}, nil, true},
		"the newest":      {EventQuery{Newest: 1}, []bus.Update{stored(1, 1, event(1)), stored(2, 2, event(2)), caughtUp}, []uint64{2}, true},
		"followed": {
			EventQuery{Newest: 1, Follow: true},
			[]bus.Update{stored(1, 1, event(1)), stored(2, 2, event(2)), caughtUp, stored(3, 3, event(3)), stored(4, 4, event(4))},
			[]uint64{2, 3, 4},
			false,
		},
		"told again": {
			EventQuery{Follow: true},
			[]bus.Update{stored(7, 1, event(1)), caughtUp, resync, stored(7, 1, event(1)), stored(9, 3, event(2)), caughtUp},
			[]uint64{1, 2},
			false,
		},
		"a stream made anew": {
			EventQuery{Follow: true},
			[]bus.Update{stored(7, 1, event(1)), caughtUp, resync, stored(1, 2, event(2)), caughtUp, resync, stored(1, 2, event(2)), stored(2, 3, event(3))},
			[]uint64{1, 2, 3},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []uint64
			r := eventReader{query: tc.query, each: func(e Event) error {
				got = append(got, e.Notice.Term)
				return e.Err
			}}
			var done bool
			for _, u := range tc.updates {
				var err error
				if done, err = r.take(u); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, tc.want) || done != tc.done {
				t.Errorf("handed over %v, done %t; want %v, %t", got, done, tc.want, tc.done)
			}
		})
	}
}

func TestEventsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var got []Event
	r := eventReader{each: func(e Event) error {
		got = append(got, e)
		return nil
	}}
	if _, err := r.take(stored(1, 1, "not JSON")); err != nil || len(got) != 1 || fault.CodeOf(got[0].Err) != fault.BusCodec {
		t.Errorf("%+v, %v", got, err)
	}
	stop := errors.New("stop")
	r.each = func(Event) error { return stop }
	if _, err := r.take(stored(2, 2, "{}")); !errors.Is(err, stop) {
		t.Errorf("the error of the one who takes is %v", err)
	}
	if _, err := r.take(bus.Update{Kind: bus.Resync, Err: bus.ErrDenied}); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("a denied stream is waited for: %v", err)
	}
}
