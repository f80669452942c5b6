package cdcmysql

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// padding makes rows long enough for many segments.
var padding = strings.Repeat("0123456789", 10)

// insertRows writes the rows first to last.
func insertRows(t *testing.T, server *harness.MySQL, first, last int) {
	t.Helper()
	values := make([]string, 0, last-first+1)
	for n := first; n <= last; n++ {
		values = append(values, fmt.Sprintf("(%d, 'row %[1]d %s')", n, padding))
	}
	run(t, server, "INSERT INTO bare.t VALUES "+strings.Join(values, ", "))
}

// insertMeanwhile writes rows one by one until the returned function is called, which tells how many there are then.
func insertMeanwhile(t *testing.T, server *harness.MySQL, first int) (finish func() (total int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var done sync.WaitGroup
	next := first
	done.Go(func() {
		for harness.Pause(ctx, 10*time.Millisecond) == nil {
			sql := fmt.Sprintf("INSERT INTO bare.t VALUES (%d, 'row %[1]d %s')", next, padding)
			if err := server.Exec(context.WithoutCancel(ctx), "", sql); err != nil {
				t.Error(err)
				return
			}
			next++
		}
	})
	return func() int {
		cancel()
		done.Wait()
		return next - 1
	}
}

// openKeyless goes on with bare.t, with a store that answers so many calls.
func openKeyless(t *testing.T, server *harness.MySQL, last *attempt, puts, gets int) *attempt {
	t.Helper()
	c := &spec.MySQLSource{Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotInitial}}
	store := newHeap()
	if last != nil {
		store = last.store
	}
	store.allow(puts, gets)
	a, err := openOver(t, server, last, store, c, "bare.t")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A table without a key is copied through the store, a segment at a time, while somebody writes to it: also when the source ends
// before the statement has, which is then done again, and between two segments, where the next attempt goes on.
func TestKeylessTable(t *testing.T) {
	t.Parallel()
	for name, server := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server, "CREATE DATABASE bare", "CREATE TABLE bare.t (n int NOT NULL, v varchar(200) NOT NULL)")
			const first = 4000
			insertRows(t, server, 1, first)
			finish := insertMeanwhile(t, server, first+1)

			a := openKeyless(t, server, nil, 5, 0)
			<-a.store.waits
			a.stop()
			if n := len(a.rows); n > 0 {
				t.Fatalf("%d rows were emitted before the statement had ended", n)
			}
			b := openKeyless(t, server, a, 1<<30, 7)
			<-b.store.waits
			b.settle(t)
			b.stop()
			if n := len(b.store.named); n < 10 || b.covered == 0 {
				t.Fatalf("the last epoch has %d rows and names %d segments, too few to mean anything", b.covered, n)
			}
			c := openKeyless(t, server, b, 0, 1<<30) // the statement is not done again
			total := finish()
			c.until(t, "the last row", func() bool { return b.covered+len(c.rows) >= total })
			c.settle(t)
			c.stop()

			seen := make(map[string]int)
			for i, got := range append(b.rows[:b.covered:b.covered], c.rows...) {
				if got.op != rows.OpRead && got.op != rows.OpInsert {
					t.Fatalf("row %d: %s", i, got)
				}
				if want := fmt.Sprintf("row %s %s", got.cells["n"], padding); got.cells["v"] != want {
					t.Fatalf("row %d: %s", i, got)
				}
				seen[got.cells["n"]]++
			}
			for n := range total {
				if times := seen[fmt.Sprint(n+1)]; times != 1 {
					t.Errorf("row %d came %d times", n+1, times)
				}
			}
			if len(c.store.named) > 0 {
				t.Errorf("%d segments are named when all are emitted", len(c.store.named))
			}
			if most := c.store.bytes; most > segment+1000 {
				t.Errorf("a segment has %d bytes, want about %d", most, segment)
			}
		})
	}
}

// What is masked is masked before it is stored.
func TestSegmentsHoldNoPrivateValues(t *testing.T) {
	t.Parallel()
	row := "('canary', 'canary', 12.5, '" + padding + "')"
	run(t, mysql, "CREATE DATABASE people_bare", "CREATE TABLE people_bare.t (a text, b text, c decimal(8,2), d text)",
		"INSERT INTO people_bare.t VALUES "+strings.Repeat(row+", ", 499)+row)
	c := &spec.MySQLSource{
		Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotInitial},
		Columns: hides(t, nil, map[string]spec.Mask{"a": spec.MaskRedact, "b": spec.MaskNull, "c": spec.MaskHash}),
	}
	a, err := openSource(t, mysql, nil, c, "people_bare.t")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("read people_bare.t a=[redacted] b=NULL c=%s d=%s", hashOf("12.50"), padding)
	for _, got := range a.take(t, 500) {
		if got.String() != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	if n := len(a.store.data); n < 3 {
		t.Errorf("%d segments were stored", n)
	}
	a.settle(t)
	a.stop()
	for _, data := range a.store.data {
		if !bytes.Contains(data, []byte(padding)) || bytes.Contains(data, []byte("canary")) || bytes.Contains(data, []byte("12.5")) {
			t.Fatalf("stored is %q", data)
		}
	}
}
