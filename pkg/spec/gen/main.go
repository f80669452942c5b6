// Command gen writes the JSON Schema of the job spec: go run ./spec/gen PATH.
package main

import (
	"fmt"
	"os"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen PATH")
		os.Exit(fault.ExitRequest)
	}
	if err := os.WriteFile(os.Args[1], spec.Schema(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(fault.ExitEnvironment)
	}
}
