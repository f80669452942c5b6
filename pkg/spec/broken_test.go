package spec_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestBroken compares the problems of every broken spec with its golden file: position, path, words, suggestion.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d broken specs, %v; want at least 40", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			job, err := spec.Parse(data, filepath.Base(file))
			if err == nil {
				t.Fatalf("accepted: %s", job.Redacted())
			}
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != fault.SpecInvalid || len(e.Problems) == 0 {
				t.Fatalf("not a SPEC_INVALID with problems: %v", err)
			}
			got := e.Text() + "\n"
			if strings.Contains(got, "canary") { // S2
				t.Errorf("a secret is printed:\n%s", got)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			for _, p := range e.Problems {
				if p.Line < 1 || p.Column < 1 {
					t.Errorf("no position: %s", p)
				}
			}
		})
	}
}
