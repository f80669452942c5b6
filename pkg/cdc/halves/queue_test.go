package halves

import (
	"errors"
	"testing"
	"testing/synctest"
)

// The queue is bounded by bytes, passes a large item alone, and tells its error last.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue[string](100)
		if err := q.Push(t.Context(), "large", 1000); err != nil {
			t.Fatal(err)
		}
		second := make(chan error, 1)
		go func() { second <- q.Push(t.Context(), "small", 0) }()
		synctest.Wait()
		if len(second) > 0 {
			t.Error("a full queue takes more")
		}
		q.Fail(errors.New("the end"))
		if it, ok, err := q.Pop(); !ok || err != nil || it != "large" {
			t.Errorf("pop gives %q, %t, %v", it, ok, err)
		}
		if err := <-second; err != nil {
			t.Fatal(err)
		}
		if it, ok, err := q.Pop(); !ok || err != nil || it != "small" {
			t.Errorf("pop gives %q, %t, %v", it, ok, err)
		}
		if _, ok, err := q.Pop(); ok || err == nil {
			t.Errorf("pop gives %t, %v behind the last item", ok, err)
		}
	})
}
