package progress

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
)

// nameOfTest is a test as docs/progress.md names it: its folder, its function and the part of it.
var nameOfTest = regexp.MustCompile("`([a-z0-9/-]+)` ((?:Test|Benchmark)[A-Za-z0-9]+)(?:/([^ ;|]+))?")

// Every test that docs/progress.md names is there under that name.
func TestWhatIsNamedHereIsThere(t *testing.T) {
	t.Parallel()
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "progress.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := nameOfTest.FindAllStringSubmatch(string(page), -1)
	if len(named) < 40 {
		t.Errorf("%d tests are named", len(named))
	}
	for _, n := range named {
		files, err := filepath.Glob(filepath.Join(root, n[1], "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no tests: %v", n[1], err)
			continue
		}
		var all strings.Builder
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		part := `"` + strings.ReplaceAll(n[3], "_", " ") + `"`
		if !strings.Contains(all.String(), "func "+n[2]+"(") || n[3] != "" && !strings.Contains(all.String(), part) {
			t.Errorf("no %s %s in %s", n[2], n[3], n[1])
		}
	}
}
