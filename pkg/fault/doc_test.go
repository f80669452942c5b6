package fault_test

import (
	"os"
	"path/filepath"
	"testing"

	"weir.dev/weir/pkg/fault"
)

func TestErrorsPageIsInStep(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != fault.Page() {
		t.Fatal("docs/errors.md is not what the table says; run: go generate ./fault")
	}
}
