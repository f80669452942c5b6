package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	for _, tpl := range spec.Templates() {
		f.Add([]byte(tpl.Text))
	}
	files, _ := filepath.Glob("testdata/broken/*.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := spec.Parse(data, "fuzz.yaml")
		if err != nil {
			if e, ok := errors.AsType[*fault.Error](err); !ok || len(e.Problems) == 0 {
				t.Fatalf("an error without problems: %v", err)
			}
			return
		}
		back, err := spec.Parse(job.Canonical(), "canonical")
		if err != nil || back.Digest() != job.Digest() {
			t.Fatalf("S3: %v\n%s", err, job.Canonical())
		}
	})
}
