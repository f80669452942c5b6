package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Golden compares a text with the file of a name in the test's testdata, line by line. With update it writes the file.
func Golden(tb testing.TB, update bool, name, got string) {
	tb.Helper()
	file := filepath.Join("testdata", name)
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			tb.Errorf("%s, line %d:\n got  %s\n want %s", name, i+1, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		tb.Errorf("%s: %d lines, want %d", name, len(a), len(b))
	}
}
