package core

import (
	"testing"
	"time"
)

// A search is told after two seconds and given up after two minutes; the pauses grow, and stay short.
func TestQuiet(t *testing.T) {
	t.Parallel()
	var q Quiet
	at := time.Unix(1000, 0)
	first, tries := at, 0
	for told := false; ; {
		pause, tell, over := q.Busy(at, 1)
		tries++
		if tell != (at.Sub(first) >= 2*time.Second) || told && !tell {
			t.Fatalf("told %t after %s", tell, at.Sub(first))
		}
		if over != (at.Sub(first) >= 2*time.Minute) {
			t.Fatalf("over %t after %s", over, at.Sub(first))
		}
		if pause <= 0 || pause > 100*time.Millisecond {
			t.Fatalf("pause %s", pause)
		}
		if over {
			break
		}
		told = tell
		at = at.Add(pause)
	}
	if tries < 1000 || q.Tries() != tries || !q.Began().Equal(first) {
		t.Errorf("%d tries, told as %d since %s", tries, q.Tries(), q.Began())
	}
	if pause, _, _ := q.Busy(at, 0); pause != 0 {
		t.Errorf("pause %s without a roll", pause)
	}
}
