package harness

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Number is what an environment variable asks of a test, such as how many faults; otherwise when it is not set.
func Number(tb testing.TB, name string, otherwise int) int {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		tb.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}
