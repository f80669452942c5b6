package explain

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const twoByTwo = `apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${SHOP_URL}", tables: ["public.*"], readers: 2}
  gen: {type: generator}
sinks:
  warehouse: {from: [db, gen], type: postgres, url: "${WAREHOUSE_URL}", schema: shop, writers: 3}
  lake: {from: [db], type: files, mode: changelog, files: {path: /var/lib/lake, format: parquet}}
`

func explained(t *testing.T, text string) *Explanation {
	t.Helper()
	j, err := spec.Parse([]byte(text), "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(j)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestForms(t *testing.T) {
	t.Parallel()
	e := explained(t, twoByTwo)
	for file, got := range map[string]string{"shop.txt": e.Text(), "shop.mmd": e.Mermaid(), "shop.svg": e.SVG()} {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s", file, got)
		}
	}
}

// TestEveryVertexIsInEachForm holds the drawings against the plan: what the coordinator would run is there, and each hop
// leads from one vertex of the drawing to another.
func TestEveryVertexIsInEachForm(t *testing.T) {
	t.Parallel()
	j, err := spec.Parse([]byte(twoByTwo), "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	model, err := plan.FromSpec(j)
	if err != nil {
		t.Fatal(err)
	}
	e := explained(t, twoByTwo)
	for _, v := range model.Vertices {
		for form, text := range map[string]string{"text": e.Text(), "mermaid": e.Mermaid(), "svg": e.SVG()} {
			if !strings.Contains(text, string(v.ID)) {
				t.Errorf("%s does not show %s", form, v.ID)
			}
		}
	}
	for _, x := range model.Edges {
		found := false
		for _, h := range e.Hops {
			found = found || h.From == string(x.From) && h.To == string(x.To) && h.Subjects != ""
		}
		if !found {
			t.Errorf("no hop for the edge from %s to %s", x.From, x.To)
		}
	}
	for _, h := range e.Hops {
		if e.index(h.From) < 0 || e.index(h.To) < 0 || weakness(h.Promise) < 0 {
			t.Errorf("hop %+v leads nowhere, or promises what has no rank", h)
		}
	}
}

// TestBoxesDoNotOverlap lays out every number of sources and sinks up to four.
func TestBoxesDoNotOverlap(t *testing.T) {
	t.Parallel()
	for sources := 1; sources <= 4; sources++ {
		for sinks := 1; sinks <= 4; sinks++ {
			text := "apiVersion: weir/v1\njob: many\nsources:\n"
			var from []string
			for i := range sources {
				from = append(from, "s"+string(rune('a'+i)))
				text += "  " + from[i] + ": {type: generator}\n"
			}
			text += "sinks:\n"
			for i := range sinks {
				text += "  t" + string(rune('a'+i)) + ": {from: [" + strings.Join(from, ", ") + "], type: blackhole}\n"
			}
			e := explained(t, text)
			at, width, height := e.layout()
			for i, p := range at {
				if p.x < 0 || p.y < 0 || p.x+boxWidth > width || p.y+boxHeight > height-margin {
					t.Errorf("%d sources, %d sinks: %s lies outside", sources, sinks, e.Vertices[i].ID)
				}
				for k, q := range at[:i] {
					if abs(p.x-q.x) < boxWidth && abs(p.y-q.y) < boxHeight {
						t.Errorf("%d sources, %d sinks: %s lies on %s", sources, sinks, e.Vertices[i].ID, e.Vertices[k].ID)
					}
				}
			}
		}
	}
}

func abs(n int) int { return max(n, -n) }

func TestSVGIsXML(t *testing.T) {
	t.Parallel()
	d := xml.NewDecoder(strings.NewReader(explained(t, twoByTwo).SVG()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
