package harness

import (
	"os"
	"testing"
)

// CopyDir makes the folder dst a copy of src; what dst held is gone.
func CopyDir(tb testing.TB, dst, src string) {
	tb.Helper()
	err := os.RemoveAll(dst)
	if err == nil {
		err = os.CopyFS(dst, os.DirFS(src))
	}
	if err != nil {
		tb.Fatal(err)
	}
}
