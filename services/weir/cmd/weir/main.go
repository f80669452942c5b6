// Command weir is Weir's command line, and all of its services in one process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"weir.dev/weir/services/weir"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := weir.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
