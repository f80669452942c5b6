package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/weir/internal/control"
	"weir.dev/weir/services/weir/internal/embed"
	"weir.dev/weir/services/weir/internal/mesh"
)

const quickstartSpec = `apiVersion: weir/v1
job: quickstart
epoch: {interval: 500ms}
sources:
  shop:
    type: generator
    rate: 500
sinks:
  nowhere:
    from: [shop]
    type: blackhole
`

func quickstartCommand(s *settings) *cobra.Command {
	var runFor time.Duration
	c := &cobra.Command{
		Use:     "quickstart",
		Short:   "Generated changes through a real mesh, as a live table; no database, nothing left on disk",
		Example: "  weir quickstart --for 30s",
		GroupID: "run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			dir, err := os.MkdirTemp("", "weir-quickstart-")
			if err != nil {
				return err
			}
			defer func() {
				if rmErr := os.RemoveAll(dir); err == nil {
					err = rmErr
				}
			}()
			ctx, cancel := context.WithTimeout(cmd.Context(), runFor)
			defer cancel()
			return quickstart(ctx, dir, s.std.Out, terminal(s.std.Out))
		},
	}
	c.Flags().DurationVar(&runFor, "for", 10*time.Second, "how long to run")
	return c
}

// terminal reports whether w is a screen that can be redrawn.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// quickstart runs the whole mesh on a private directory until ctx ends.
func quickstart(ctx context.Context, dir string, w io.Writer, screen bool) error {
	quiet := slog.New(slog.DiscardHandler)
	server, err := embed.Start(ctx, embed.Config{StoreDir: dir, Logger: quiet})
	if err != nil {
		return err
	}
	defer server.Stop()
	tel, err := telemetry.Open(ctx, telemetry.Config{
		Service: "weir", Version: app.Version(), Node: "quickstart", Logger: quiet,
		Env: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		return err
	}
	env := app.Env{
		Service: "weir", Node: "quickstart", Telemetry: tel.For("weir", "quickstart"), Lookup: config.OS(), Health: app.NewHealth(),
		Bus: bus.Options{Name: "quickstart", InProcess: server, Logger: quiet}, Ready: func() {},
	}
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	ran := make(chan error, 1)
	go func() { ran <- mesh.Run(running, env, mesh.Names()...) }()
	shown := make(chan error, 1)
	go func() { shown <- show(ctx, env.Bus, w, screen) }()
	select {
	case err := <-ran:
		return err
	case err := <-shown:
		stop(app.ErrStopped)
		<-ran //nolint:errcheck // it was stopped; what was shown is what counts
		if err == nil {
			next(w)
		}
		return err
	}
}

// show submits the job and draws the table until ctx ends.
func show(ctx context.Context, options bus.Options, w io.Writer, screen bool) error {
	conn, err := bus.Connect(ctx, options)
	if err != nil {
		return err
	}
	defer conn.Close()
	c, err := control.Open(ctx, conn)
	if err != nil {
		return err
	}
	j, err := spec.Parse([]byte(quickstartSpec), "quickstart")
	if err != nil {
		return err
	}
	tap, err := conn.Tap(ctx, "weir.data."+j.Name+".>")
	if err != nil {
		return err
	}
	defer tap.Close()
	if _, err := c.Submit(ctx, j, "quickstart", false); err != nil {
		return err
	}
	var b board
	var following sync.WaitGroup
	following.Go(func() { b.follow(ctx, tap) })
	defer following.Wait()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for drawn := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		st, err := c.Status(ctx, j.Name)
		if err != nil {
			// The time is up, or the job has no record yet.
			continue
		}
		if screen && drawn > 0 {
			fmt.Fprintf(w, "\x1b[%dA\x1b[J", drawn)
		}
		drawn = b.draw(w, st)
	}
}

// boardRows is how many of the newest rows are shown.
const boardRows = 6

// board holds the newest rows that passed on the bus.
type board struct {
	mu    sync.Mutex
	last  []string
	total uint64
}

func (b *board) follow(ctx context.Context, tap *bus.Tap) {
	var dec rows.Decoder
	for {
		m, err := tap.Next(ctx)
		if err != nil {
			return
		}
		env, err := envelope.Parse(m.Header, m.Data)
		if err != nil || env.Kind != envelope.Rows || env.Ref != "" {
			continue
		}
		if batch, err := dec.Decode(env.Payload); err == nil {
			b.add(batch)
		}
	}
}

func (b *board) add(batch *rows.Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := batch.NumRows()
	b.total += uint64(n)
	for i := max(0, n-boardRows); i < n; i++ {
		line := batch.Op(i).String() + "  " + string(batch.Schema().Table()) + "  " + string(batch.AppendColumnsJSON(nil, i))
		b.last = append(b.last, clip(line, 118))
	}
	b.last = b.last[max(0, len(b.last)-boardRows):]
}

// clip cuts a line to a width of n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// draw prints the table and returns how many lines it took.
func (b *board) draw(w io.Writer, st control.Status) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(w, "%s  attempt %d  epoch durable %d, committed %d  rows on the bus %d\n", st.Phase, st.Fence, st.Epoch.Durable, st.Epoch.Committed, b.total)
	for _, l := range b.last {
		fmt.Fprintln(w, "  "+l)
	}
	return 1 + len(b.last)
}

func next(w io.Writer) {
	fmt.Fprint(w, `
That was a coordinator, a source, a sink and a NATS server in this process; nothing is left on disk.
Try next:
  weir schema > job.schema.json     the job spec, for your editor
  weir validate shop.yaml           check a job of your own
  weir up shop.yaml                 run it; `+"`weir status shop`"+` and `+"`weir bus shop`"+` look inside
`)
}
