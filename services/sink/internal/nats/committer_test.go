package nats

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// scene is a stream with one job's sink.
type scene struct {
	t   *testing.T
	srv *meshtest.Server
	o   *bus.Outlet
	cfg sink.Config

	fence fence.Token
	c     sink.Committer
	last  epoch.Ref
}

func newScene(t *testing.T) *scene {
	t.Helper()
	srv, s := target(t, spec.Debezium)
	return &scene{t: t, srv: srv, o: outlet(t, srv), cfg: sink.Config{
		Identity: source.Identity{Job: "shop", Life: "life", Subtask: plan.SubtaskID{Vertex: "events"}},
		Sink:     s, Resolve: plain, Store: noStore{}, Writers: 1,
	}}
}

// noStore stands for a store that small epochs do not need.
type noStore struct{ sink.Store }

// attempt opens the next attempt; the one before it is left as it is.
func (s *scene) attempt() sink.Committer {
	s.t.Helper()
	s.fence++
	cfg := s.cfg
	cfg.Fence = s.fence
	c, err := Connector{}.OpenCommitter(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	s.c = c
	return c
}

// run opens the next attempt and claims.
func (s *scene) run() {
	s.t.Helper()
	if _, err := s.attempt().Claim(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// epoch is the next epoch with these texts inserted, as a writer stages it.
func (s *scene) epoch(texts ...string) sink.Commit {
	s.t.Helper()
	schema, err := rows.NewSchema("public.things", 1, "postgres", []rows.Column{
		{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}, {Name: "text", Type: rows.Of(rows.KindText)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	b := rows.NewBuilder(schema)
	for i, text := range texts {
		b.Column(0).(*array.Int64Builder).Append(int64(i))
		b.Column(1).(*array.StringBuilder).Append(text)
		b.EndRow(rows.Meta{Op: rows.OpInsert, Seq: uint64(i + 1), Txn: 7, Ord: uint32(i)})
	}
	batch, err := b.Flush()
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := Connector{}.OpenWriter(s.t.Context(), s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := w.Write(s.t.Context(), *batch); err != nil {
		s.t.Fatal(err)
	}
	n := s.last.Epoch + 1
	pieces, err := w.Stage(s.t.Context(), n)
	if err != nil {
		s.t.Fatal(err)
	}
	c := sink.Commit{Ref: epoch.Ref{Epoch: n, Digest: "digest " + n.String()}, Prev: s.last}
	for _, p := range pieces {
		c.Staged = append(c.Staged, epoch.Staged{Epoch: n, Subtask: s.cfg.Subtask, Data: p.Data, Rows: p.Rows})
	}
	return c
}

func (s *scene) commit(c sink.Commit) sink.Result {
	s.t.Helper()
	r, err := s.c.Commit(s.t.Context(), c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.last = c.Ref
	return r
}

// write puts messages into the stream behind Weir's back.
func (s *scene) write(n int, header func(i int) bus.Header) {
	s.t.Helper()
	tail, err := s.o.Tail(s.t.Context(), "cdc.shop._weir")
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := s.o.Append(s.t.Context(), tail.Seq)
	if err != nil {
		s.t.Fatal(err)
	}
	defer a.Close()
	for i := range n {
		if err := a.Put(s.t.Context(), "cdc.shop.db.public.things", header(i), []byte("by hand")); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := a.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// places are epoch and index of the events that are there.
func (s *scene) places() (found []string) {
	s.t.Helper()
	all, err := s.o.Read(s.t.Context(), "cdc.shop.*.*.*", time.Time{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range all {
		found = append(found, e.Header.Get("Weir-Epoch")+"."+e.Header.Get("Weir-Index"))
	}
	return found
}

func places(e int, from, to int) (want []string) {
	for i := from; i < to; i++ {
		want = append(want, fmt.Sprintf("%d.%d", e, i))
	}
	return want
}

func TestForeignWritesStop(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	s.commit(s.epoch("a"))
	s.write(1, func(int) bus.Header { return bus.Header{} })
	next := s.epoch("b")
	for range 2 {
		if _, err := s.c.Commit(t.Context(), next); fault.CodeOf(err) != fault.SinkStreamForeign || !errors.Is(err, fault.Permanent) {
			t.Errorf("commit behind a foreign message: %v", err)
		}
	}
	if _, err := s.attempt().Claim(t.Context()); fault.CodeOf(err) != fault.SinkStreamForeign {
		t.Errorf("claim behind a foreign message: %v", err)
	}
	if got := s.places(); !slices.Equal(got, []string{"1.0", "."}) {
		t.Errorf("the stream holds %q", got)
	}
}

// What an attempt that died has sent of an epoch is not sent again, in whichever batch it ended.
func TestGoesOnBehindTheNewestEvent(t *testing.T) {
	t.Parallel()
	for _, there := range []int{1, 999, 1000, 1999} {
		t.Run(strconv.Itoa(there), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.run()
			s.commit(s.epoch("a"))
			c := s.epoch(slices.Repeat([]string{"b"}, 2000)...)
			s.write(there, func(i int) bus.Header {
				return bus.Header{headerLife: {"life"}, headerFence: {"1"}, headerEpoch: {"2"}, headerIndex: {strconv.Itoa(i)}}
			})
			for range 2 { // a second one that dies before its first event
				s.run()
			}
			if r := s.commit(c); !r.Applied || r.Rows != 2000 {
				t.Errorf("%+v", r)
			}
			if got, want := s.places(), append(places(1, 0, 1), places(2, 0, 2000)...); !slices.Equal(got, want) {
				t.Errorf("%d events, want %d", len(got), len(want))
			}
			// An epoch that is there in part is completed and no other one begun.
			if r, err := s.c.Commit(t.Context(), c); err != nil || r.Applied {
				t.Errorf("again: %+v, %v", r, err)
			}
		})
	}
}

func TestAnotherEpochOverAPart(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.run()
	s.commit(s.epoch("a"))
	s.write(1, func(int) bus.Header {
		return bus.Header{headerLife: {"life"}, headerFence: {"1"}, headerEpoch: {"9"}, headerIndex: {"0"}}
	})
	s.run()
	if _, err := s.c.Commit(t.Context(), s.epoch("b")); fault.CodeOf(err) != fault.JobLedgerDiverged {
		t.Errorf("commit of epoch 2 over a part of epoch 9: %v", err)
	}
}

func TestEventsThatAreTooBig(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	huge := strings.Repeat("x", 1<<20)
	c := s.epoch("small", huge, "small")
	s.run()
	if _, err := s.c.Commit(t.Context(), c); fault.CodeOf(err) != fault.SinkEventTooBig || errors.Is(err, fault.Transient) {
		t.Errorf("without dead letters: %v", err)
	}
	letters := sinktest.Letters{}
	s.cfg.Letters = letters
	s.run()
	if r := s.commit(c); r.Rows != 2 || r.Dead != 1 {
		t.Errorf("%+v", r)
	}
	if got, want := s.places(), []string{"1.0", "1.2"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	l, ok := letters[sink.LetterID{Table: "public.things", Epoch: 1, Index: 1}]
	if !ok || fault.CodeOf(l.Fault) != fault.SinkEventTooBig || string(l.Key) != `{"id":1}` {
		t.Errorf("letters %v", letters)
	}
	// A row with a letter stays out of every repetition.
	only := s.epoch("a", "b")
	letters[sink.LetterID{Table: "public.things", Epoch: 2, Index: 0}] = sink.Letter{}
	if r := s.commit(only); r.Rows != 1 || r.Dead != 1 {
		t.Errorf("%+v", r)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if l, err := ReadLedger(t.Context(), s.cfg); err != nil || l.Life != "" {
		t.Errorf("before the first claim: %+v, %v", l, err)
	}
	s.run()
	s.commit(s.epoch("a"))
	s.commit(s.epoch("b", "c"))
	s.run()
	l, err := ReadLedger(t.Context(), s.cfg)
	if err != nil || l.Check() != nil {
		t.Fatal(err, l.Check())
	}
	if l.Ref != s.last || l.Fence != 2 || len(l.Log) != 2 || l.Log[1].Rows != 2 {
		t.Errorf("%+v", l)
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	statuses := func(life string) (all []preflight.Status) {
		t.Helper()
		cfg := s.cfg
		cfg.Life = life
		found, err := Doctor(t.Context(), cfg, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			all = append(all, f.Status)
		}
		return all
	}
	s.run()
	s.commit(s.epoch("a"))
	ok, bad := preflight.OK, preflight.Error
	if got := statuses("life"); !slices.Equal(got, []preflight.Status{ok, ok, ok}) {
		t.Errorf("a stream of this life: %v", got)
	}
	if got := statuses("another"); !slices.Equal(got, []preflight.Status{ok, ok, bad}) {
		t.Errorf("a stream of another life: %v", got)
	}
	s.cfg.Sink.Config = &spec.NATSSink{URL: config.NewSecret(s.srv.URL()), Stream: "CHANGES", Prefix: "cdc.other", Create: true}
	if got := statuses("life"); !slices.Equal(got, []preflight.Status{ok, bad}) {
		t.Errorf("a stream with another prefix: %v", got)
	}
	s.cfg.Sink.Config = &spec.NATSSink{URL: config.NewSecret(s.srv.URL()), Stream: "MISSING", Prefix: "cdc.missing", Create: true}
	if got := statuses("life"); !slices.Equal(got, []preflight.Status{ok, ok}) {
		t.Errorf("a stream that will be made: %v", got)
	}
}
