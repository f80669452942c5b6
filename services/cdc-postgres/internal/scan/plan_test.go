package scan

import (
	"strings"
	"testing"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
)

// plan is one for a table of four columns: two forms, and a name that has to be quoted.
func plan(t *testing.T) (*rows.Builder, *Plan) {
	t.Helper()
	codecs := []pgcodec.Codec{
		pgcodec.ForOID(23, -1, ""), pgcodec.ForOID(25, -1, ""), pgcodec.ForOID(1186, -1, ""), pgcodec.ForOID(1007, -1, ""),
	}
	var columns []rows.Column
	for i, name := range []string{"id", `say "hi", x`, "iv", "list"} {
		columns = append(columns, rows.Column{Name: name, Type: codecs[i].Type(), Source: codecs[i].SourceType(), Nullable: true})
	}
	s, err := rows.NewSchema("public.t", 1, pgcodec.Origin, columns)
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	p, err := Bind(b, codecs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Bind(b, codecs[:3]); err == nil {
		t.Error("bound with a codec too few")
	}
	return b, p
}

func TestPlan(t *testing.T) {
	t.Parallel()
	b, p := plan(t)
	if got := p.List(); got != `"id", "say ""hi"", x", CASE WHEN "iv" IS DISTINCT FROM NULL THEN concat("iv") END, "list"` {
		t.Errorf("list is %s", got)
	}
	for i, want := range []pgcodec.Format{pgcodec.Binary, pgcodec.Binary, pgcodec.Text, pgcodec.Binary} {
		if got := p.Form(i); got != want {
			t.Errorf("column %d is read as %c, want %c", i, got, want)
		}
	}
	empty := make([]byte, 12) // an array without dimensions
	data := AppendTuple(nil, [][]byte{{0, 0, 0, 7}, {}, []byte("1 day"), empty})
	data = AppendTuple(data, [][]byte{nil, nil, nil, nil})
	for len(data) > 0 {
		var err error
		if data, err = p.Put(data); err != nil {
			t.Fatal(err)
		}
		b.EndRow(rows.Meta{Op: rows.OpRead})
	}
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"id":7,"say \"hi\", x":"","iv":"1 day","list":[]}`, `{"id":null,"say \"hi\", x":null,"iv":null,"list":null}`} {
		if got := string(batch.AppendColumnsJSON(nil, i)); got != want { // S2
			t.Errorf("row %d is %s, want %s", i, got, want)
		}
	}
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	whole := AppendTuple(nil, [][]byte{{0, 0, 0, 7}, []byte("canary"), []byte("canary"), nil})
	for n := range whole {
		_, p := plan(t)
		if _, err := p.Put(whole[:n]); err == nil {
			t.Errorf("took %d of %d bytes", n, len(whole))
		}
	}
	for _, cells := range [][][]byte{
		{{0, 0, 0, 7}},
		{[]byte("canary"), nil, nil, nil},
	} {
		_, p := plan(t)
		_, err := p.Put(AppendTuple(nil, cells))
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%d cells: error is %v", len(cells), err)
		}
		if len(cells) > 1 && !strings.Contains(err.Error(), `"id"`) {
			t.Errorf("error is %v", err)
		}
	}
}

// S3.
func TestPutDoesNotAllocate(t *testing.T) {
	b, p := plan(t)
	tuple := AppendTuple(nil, [][]byte{{0, 0, 0, 7}, []byte("text"), []byte("1 day"), nil})
	put := func() {
		for range 1000 {
			if _, err := p.Put(tuple); err != nil {
				t.Fatal(err)
			}
			b.EndRow(rows.Meta{Op: rows.OpRead})
		}
		if _, err := b.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if n := testing.AllocsPerRun(5, put); n > 200 { // of the batch, for 4,000 cells
		t.Errorf("%.0f allocations for 1,000 rows", n)
	}
}
