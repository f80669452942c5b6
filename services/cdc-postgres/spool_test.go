package cdcpostgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
	"weir.dev/weir/services/cdc-postgres/internal/scan"
)

// heap is a store.
type heap map[string][]byte

func (h heap) Put(_ context.Context, data []byte) (epoch.Object, error) {
	name := fmt.Sprint("object ", len(h)+1)
	h[name] = slices.Clone(data)
	return epoch.Object{Subject: name, Size: int64(len(data))}, nil
}

func (h heap) Get(_ context.Context, o epoch.Object) ([]byte, error) {
	data, ok := h[o.Subject]
	if !ok {
		return nil, errors.New("no " + o.Subject)
	}
	return data, nil
}

// bareTable is what a reader and its copier know about a table without a key.
func bareTable(t *testing.T) (*copyPlan, capturedTable) {
	t.Helper()
	d := pair(1, 'f')
	d.key = nil
	for i := range d.columns {
		d.columns[i].KeyPos = 0
	}
	bound, err := bind(d, firstVersion, "sources.db")
	if err != nil {
		t.Fatal(err)
	}
	p := &copyPlan{table: bound}
	if p.scan, err = scan.Bind(bound.builder.Builder, d.codecs); err != nil {
		t.Fatal(err)
	}
	return p, capturedTable{OID: 1}
}

// spoolingReader has a copier that a test plays, and one chunk: the whole of a table without a key.
func spoolingReader(t *testing.T, store source.Store, resume []byte) (*reader, cdc.Chunk) {
	t.Helper()
	r := newTestReader(t, core.Position{}, source.Config{Store: store})
	r.tracker = nil
	r.copier = &copier{work: make(chan cdc.Work, 1), tell: make(chan cdc.TableID, 1), done: make(chan *copied, 1)}
	a := cdc.NewAssigner(cdc.Config{Mode: cdc.Initial, Readers: 1}, []cdc.Table{{ID: 1, Name: "s.t", Keyless: true}})
	exchange(t, a, r.share)
	a.Settled(1)
	exchange(t, a, r.share)
	w, ok := r.share.Next()
	if !ok || w.Resume != nil {
		t.Fatal("no chunk was handed out")
	}
	if resume != nil {
		r.share.Spool(w.ChunkID, resume)
	}
	return r, w.Chunk
}

func targetFor(t *testing.T) *pgrepl.Target {
	t.Helper()
	target, err := pgrepl.NewTarget("postgres://127.0.0.1:1/shop", "sources.db", core.Session{})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// exchange carries the messages between an assigner and a share.
func exchange(t *testing.T, a *cdc.Assigner, s *cdc.Share) {
	t.Helper()
	for _, m := range s.Outbox() {
		if err := a.Receive(0, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range a.Effects() {
		if tell, ok := e.(cdc.Tell); ok {
			if err := s.Receive(tell.Payload); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// names are the objects of a reader's cut.
func names(t *testing.T, r *reader) []string {
	t.Helper()
	cut, err := r.Snapshot(1)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, o := range cut.Objects {
		all = append(all, o.Subject)
	}
	return all
}

func pairRow(k byte, v string) []byte {
	return scan.AppendTuple(nil, [][]byte{{0, 0, 0, k}, []byte(v)})
}

// Every cut names the segments of a spool from the moment they are stored until they are emitted. Nothing is emitted before
// a cut has named all of them, and a statement that begins anew forgets what the one before had stored.
func TestSpool(t *testing.T) {
	t.Parallel()
	store := heap{}
	r, chunk := spoolingReader(t, store, nil)
	copies, captured := bareTable(t)
	mark := &core.Mark{Xmin: 5, Xmax: 9, End: 70}
	var out kept
	step := func(c *copied) {
		t.Helper()
		c.Work, c.plan = cdc.Work{Chunk: chunk}, copies
		r.copier.done <- c
		poll(t, r, &out, nil)
	}
	step(&copied{step: halves.Fill, data: pairRow(9, "of a broken statement"), rows: 1})
	if got := names(t, r); !slices.Equal(got, []string{"object 1"}) {
		t.Errorf("named are %q", got)
	}
	step(&copied{step: halves.Fill, data: append(pairRow(1, "a"), pairRow(2, "b")...), rows: 2})
	if got := names(t, r); !slices.Equal(got, []string{"object 2"}) {
		t.Errorf("named are %q", got)
	}
	step(&copied{step: halves.Filled, part: 1, data: pairRow(3, "c"), rows: 1, mark: mark})
	if r.feed(); len(r.copier.work) > 0 {
		t.Fatal("a spool is to be emitted that no cut has named")
	}
	if got := names(t, r); !slices.Equal(got, []string{"object 2", "object 3"}) {
		t.Errorf("named are %q", got)
	}
	r.feed()
	work := <-r.copier.work
	out.want(t)

	// Another attempt goes on from what that cut has.
	for range 2 {
		c := &copier{
			target: targetFor(t), store: store, done: make(chan *copied, 2),
			tables: map[cdc.TableID]*capturedTable{1: &captured}, plans: map[cdc.TableID]*copyPlan{1: copies},
		}
		next, _ := spoolingReader(t, store, work.Resume)
		if err := c.fetch(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		next.copier.done <- <-c.done
		out = kept{}
		poll(t, next, &out, nil)
		out.want(t, "s.t@1: read(1a) read(2b)")
		if got := names(t, next); !slices.Equal(got, []string{"object 3"}) {
			t.Errorf("named are %q when the first segment was emitted", got)
		}
		next.copier.done <- <-c.done
		poll(t, next, &out, nil)
		out.want(t, "s.t@1: read(1a) read(2b)", "s.t@1: read(3c)")
		if got := names(t, next); len(got) > 0 {
			t.Errorf("named are %q when everything was emitted", got)
		}
	}
}

// A spool is read only as it was written: a state that is not one, or of cells in another form, stops the job.
func TestSpoolOfAnotherForm(t *testing.T) {
	t.Parallel()
	copies, captured := bareTable(t)
	c := &copier{
		target: targetFor(t), store: heap{}, done: make(chan *copied, 2),
		tables: map[cdc.TableID]*capturedTable{1: &captured}, plans: map[cdc.TableID]*copyPlan{1: copies},
	}
	for state, want := range map[string]fault.Code{
		"no state":                               fault.SrcPosition,
		`{"version":2,"segments":[{"rows":1}]}`:  fault.SrcPosition,
		`{"version":1,"form":"f","segments":[]}`: fault.SrcPosition,
		`{"version":1,"form":"another","mark":"NTo5OkAwLzQ2","segments":[{"rows":1}]}`: fault.PGSchemaChanged,
	} {
		work := cdc.Work{Chunk: cdc.Chunk{ChunkID: cdc.ChunkID{Table: 1}}, Resume: []byte(state)}
		if got := c.take(t.Context(), work); fault.CodeOf(got.err) != want {
			t.Errorf("%s: %v", state, got.err)
		}
	}
}

// Segments lie on the bus, where private values must not be: the copier masks cells before it keeps them.
func TestSegmentsHoldNoPrivateValues(t *testing.T) {
	t.Parallel()
	p := &copyPlan{covers: make([]func([]byte) []byte, 4)}
	hidden := &spec.Columns{Mask: spec.Masks{{Mask: spec.MaskHash}}, Salt: config.NewSecret("${SALT}")}
	h, err := halves.NewVeil(hidden, func(string) (string, error) { return "salt", nil }, "sources.db")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range []spec.Mask{spec.MaskNull, spec.MaskRedact, spec.MaskHash} {
		p.covers[i+1] = masked{column: i + 1, mask: m, veil: &veil{h}}.cover()
	}
	canary := []byte("canary")
	kept, err := p.keep(nil, scan.AppendTuple(nil, [][]byte{[]byte("shown"), canary, canary, canary}))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(kept, []byte("canary")) || !bytes.Contains(kept, []byte("shown")) {
		t.Errorf("kept is %q", kept)
	}
	cells, err := scan.Cells(nil, kept)
	if err != nil {
		t.Fatal(err)
	}
	if cells[1] != nil || string(cells[2]) != "[redacted]" || len(cells[3]) != 64 {
		t.Errorf("cells are %q", cells)
	}
	none := scan.AppendTuple(nil, [][]byte{nil, nil, nil, nil})
	if got, err := p.keep(nil, none); err != nil || !bytes.Equal(got, none) {
		t.Errorf("null became %q, %v", got, err)
	}
}
