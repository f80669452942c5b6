package weir

import (
	"context"
	"io"

	"weir.dev/weir/services/weir/internal/cli"
)

// Main runs one command line and returns its exit code: 0 ok, 1 internal, 2 bad request or config, 3 environment,
// 4 verification failed, 5 timeout of a wait, 130/143 stopped by a signal. ctx ends with an
// [app.StoppedError] as its cause when a signal came.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, args, cli.Std{Out: stdout, Err: stderr})
}
