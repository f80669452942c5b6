package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"pgregory.net/rapid"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
)

// store is a map; it refuses when broken is set.
type store struct {
	mu     sync.Mutex
	pieces map[string][]byte
	broken error
}

func (s *store) Put(_ context.Context, data []byte) (epoch.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return epoch.Object{}, s.broken
	}
	if s.pieces == nil {
		s.pieces = make(map[string][]byte)
	}
	o := epoch.Object{Subject: fmt.Sprint(len(s.pieces)), Size: int64(len(data))}
	s.pieces[o.Subject] = slices.Clone(data)
	return o, nil
}

func (s *store) Get(_ context.Context, o epoch.Object) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data, ok := s.pieces[o.Subject]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("no object %s", o.Subject)
}

func table(t interface{ Fatal(...any) }, name string, version uint32, extra ...rows.Column) *rows.Schema {
	columns := append([]rows.Column{
		{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1},
		{Name: "v", Type: rows.Of(rows.KindText), Nullable: true},
	}, extra...)
	s, err := rows.NewSchema(rows.TableID(name), version, "", columns)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type change struct {
	op rows.Op
	id int64
	v  string
}

func batch(t interface{ Fatal(...any) }, s *rows.Schema, changes ...change) *rows.Batch {
	b := rows.NewBuilder(s)
	for i, c := range changes {
		if c.op == rows.OpTruncate {
			b.Truncate(rows.Meta{Seq: uint64(i)})
			continue
		}
		b.Column(0).(*array.Int64Builder).Append(c.id)
		if c.v == "absent" {
			b.Absent(1)
		} else {
			b.Column(1).(*array.StringBuilder).Append(c.v)
		}
		for j := 2; j < s.NumColumns(); j++ {
			b.Null(j)
		}
		b.EndRow(rows.Meta{Op: c.op, Seq: uint64(i)})
	}
	out, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t *testing.T, s *store, pieces []sink.Piece) []string {
	t.Helper()
	codec, err := NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range pieces {
		d, err := ParseDesc(p.Data)
		if err != nil {
			t.Fatal(err)
		}
		if d.Truncate {
			out = append(out, string(d.Table)+" truncate")
			continue
		}
		parts, err := d.Open(t.Context(), s, codec)
		if err != nil {
			t.Fatal(err)
		}
		var n uint64
		for _, part := range parts {
			for i := range part.Rows.NumRows() {
				n++
				v, _ := part.Rows.AppendText(nil, 1, i)
				out = append(out, fmt.Sprintf("%s/%d %d %d=%s", d.Table, part.Rows.Schema().Version(), part.Kind,
					part.Rows.Column(0).(*array.Int64).Value(i), v))
			}
		}
		if n != p.Rows {
			t.Errorf("piece says %d rows and holds %d", p.Rows, n)
		}
	}
	return out
}

func TestUpsertsOfOneEpoch(t *testing.T) {
	t.Parallel()
	v1, v2 := table(t, "s.a", 1), table(t, "s.a", 2, rows.Column{Name: "w", Type: rows.Of(rows.KindBool), Nullable: true})
	b := table(t, "s.b", 1)
	var s store
	w, err := NewWriter(&s, Upserts)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []*rows.Batch{
		batch(t, v1, change{rows.OpInsert, 1, "a"}, change{rows.OpInsert, 2, "gone"}, change{rows.OpDelete, 2, ""}),
		batch(t, b, change{rows.OpInsert, 9, "lost"}, change{rows.OpTruncate, 0, ""}, change{rows.OpRead, 8, "kept"}),
		batch(t, v1, change{rows.OpUpdateAfter, 1, "b"}, change{rows.OpUpdateAfter, 3, "c"}, change{rows.OpUpdateAfter, 4, "absent"}),
		batch(t, v2, change{rows.OpUpdateAfter, 1, "d"}),
	} {
		if err := w.Write(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	pieces, err := w.Stage(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"s.a/1 1 2=", "s.a/1 3 1=b", "s.a/1 3 3=c", "s.a/1 4 4=",
		"s.b truncate", "s.b/1 2 8=kept", "s.a/2 3 1=d",
	}
	if got := open(t, &s, pieces); !slices.Equal(got, want) {
		t.Errorf("staged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(s.pieces) != 0 || w.Pending() != 0 {
		t.Errorf("%d objects for small pieces, %d bytes pending after Stage", len(s.pieces), w.Pending())
	}
	if again, err := w.Stage(t.Context(), 2); err != nil || len(again) != 0 {
		t.Errorf("an empty epoch staged %d pieces, %v", len(again), err)
	}
}

// The pieces of an epoch do not depend on its size: a big one is in the store before Stage.
func TestBigEpochIsPutEarly(t *testing.T) {
	t.Parallel()
	a := table(t, "s.a", 1)
	var s store
	w, err := NewWriter(&s, Changes(rows.OpInsert))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	n := int64(0)
	for range 3 {
		var changes []change
		for range 3 {
			n++
			v := strings.Repeat(fmt.Sprint(n%10), pieceRaw/3)
			changes = append(changes, change{rows.OpInsert, n, v})
			want = append(want, fmt.Sprintf("s.a/1 5 %d=%s", n, v))
		}
		if err := w.Write(t.Context(), batch(t, a, changes...)); err != nil {
			t.Fatal(err)
		}
		if w.open.Raw() >= pieceRaw {
			t.Errorf("%d bytes are open", w.open.Raw())
		}
	}
	pieces, err := w.Stage(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := open(t, &s, pieces); !slices.Equal(got, want) {
		t.Errorf("%d rows came back, want %d in order", len(got), len(want))
	}
}

func TestFailedPutFailsStage(t *testing.T) {
	t.Parallel()
	a := table(t, "s.a", 1)
	s := store{broken: fmt.Errorf("no bus")}
	w, err := NewWriter(&s, Changes(rows.OpInsert))
	if err != nil {
		t.Fatal(err)
	}
	// Text that does not compress is too big to travel inline.
	var v strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&v, "%x", uint32(i)*2654435761)
	}
	if err := w.Write(t.Context(), batch(t, a, change{rows.OpInsert, 1, v.String()})); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stage(t.Context(), 1); err == nil {
		t.Error("Stage succeeded although nothing is safe")
	}
}

func TestDamagedPiecesAreErrors(t *testing.T) {
	t.Parallel()
	codec, err := NewCodec()
	if err != nil {
		t.Fatal(err)
	}
	a := table(t, "s.a", 1)
	data, err := codec.Encode([]Part{{Upsert, batch(t, a, change{rows.OpInsert, 1, "x"})}, {Delete, batch(t, a, change{rows.OpDelete, 2, ""})}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := slices.Clone(data)
		if rapid.Bool().Draw(t, "cut") {
			bad = bad[:rapid.IntRange(0, len(bad)-1).Draw(t, "length")]
		} else {
			bad[rapid.IntRange(0, len(bad)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		}
		parts, err := codec.Decode(bad)
		if err == nil && len(parts) == 2 && len(bad) != len(data) {
			t.Fatal("a cut piece was read")
		}
	})
}
