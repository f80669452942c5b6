package halves

import "testing"

func TestSplits(t *testing.T) {
	t.Parallel()
	var s Splits
	want := func(id string, following bool) {
		t.Helper()
		got, ok := s.Active().Get()
		if got != id || ok != (id != "") || s.Idle() != (id == "") || s.Following() != following {
			t.Errorf("at %q (%v), following %v; want %q, %v", got, ok, s.Following(), id, following)
		}
	}
	want("", false)
	s.Begin("1#0")
	s.Begin("1#1") // fetched while the rows of the one before are emitted
	s.End("1#0")
	want("1#1", false)
	s.End("1#1")
	want("", false)
	s.Follow()
	want("log", true)
	s.Begin("2#0") // a table that is copied anew
	want("2#0", true)
	s.End("2#0")
	want("log", true)
}
