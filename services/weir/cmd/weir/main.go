// Command weir is Weir's command line, and all of its services in one process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/services/weir"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	// Services take signals for themselves: a second one is theirs.
	ctx, stop := app.Signals(context.Background(), signals, func(int) {})
	code := weir.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
