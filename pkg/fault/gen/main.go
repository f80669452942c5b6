// Command gen writes docs/errors.md from the table of codes: go run ./fault/gen PATH.
package main

import (
	"fmt"
	"os"

	"weir.dev/weir/pkg/fault"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen PATH")
		os.Exit(fault.ExitRequest)
	}
	if err := os.WriteFile(os.Args[1], []byte(fault.Page()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(fault.ExitEnvironment)
	}
}
