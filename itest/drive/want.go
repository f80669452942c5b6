package drive

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
)

// WantLines compares what a target has, as lines of text.
func WantLines(tb testing.TB, got []string, want ...string) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("the target has\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// WantCode wants an error of a code that names these words, and in no case a value that a test has called canary.
func WantCode(tb testing.TB, err error, want fault.Code, words ...string) {
	tb.Helper()
	if fault.CodeOf(err) != want {
		tb.Errorf("error = %v, want code %s", err, want)
		return
	}
	text := fault.Of(err).Text()
	for _, w := range words {
		if !strings.Contains(text, w) {
			tb.Errorf("the error does not say %q:\n%s", w, text)
		}
	}
	if strings.Contains(text, "canary") {
		tb.Errorf("the error shows a value:\n%s", text)
	}
}
