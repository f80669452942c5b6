package cli

import (
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/mesh"
)

// process are the flags of commands that are services.
type process struct {
	http, node, logLevel, logFormat, config string
}

func (p *process) flags(c *cobra.Command, http string) {
	f := c.Flags()
	f.StringVar(&p.http, "http", http, "address of /livez, /readyz, /metrics and /debug/pprof")
	f.StringVar(&p.node, "node", "", "identity of this process (default: <host>-<6 random>)")
	f.StringVar(&p.logLevel, "log-level", "", "debug, info, warn or error")
	f.StringVar(&p.logFormat, "log-format", "", "auto, text or json")
}

// outside makes the process a service runs in. The returned function gives the signals back.
func (p *process) outside(s *settings, nats string) (app.Process, func()) {
	var args []string
	for _, f := range []struct{ name, value string }{
		{"http", p.http},
		{"node", p.node},
		{"nats", nats},
		{"creds", s.creds},
		{"log-level", p.logLevel},
		{"log-format", p.logFormat},
		{"config", p.config},
	} {
		if f.value != "" {
			args = append(args, "--"+f.name, f.value)
		}
	}
	exit := os.Exit //nolint:forbidigo // a forced stop ends the process; app calls it for a second signal only
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	return app.Process{
		Args: args, Environ: os.Environ(), Stdout: s.std.Out, Stderr: s.std.Err, Signals: signals, Exit: exit,
	}, func() { signal.Stop(signals) }
}

// exited is the end of a service whose own shell has said everything there is to say.
type exited int

// Error is never shown.
func (e exited) Error() string { return "the service ended with an error" }

func serveCommand(s *settings) *cobra.Command {
	var p process
	c := &cobra.Command{
		Use:     "serve ROLE...",
		Short:   "Run one or more services of the mesh against a NATS server",
		Long:    "Roles: " + strings.Join(mesh.Names(), ", ") + ".\nOne role alone takes its settings from file, WEIR_<SERVICE>_<FIELD> and flags, as its own binary does.",
		Example: "  weir serve coordinator --nats nats://127.0.0.1:4222\n  weir serve cdc-postgres sink",
		GroupID: "run",
		Args:    cobra.MinimumNArgs(1),

		ValidArgs: mesh.Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			outside, stop := p.outside(s, s.nats)
			defer stop()
			code, err := mesh.Execute(outside, args...)
			return ended(code, err)
		},
	}
	p.flags(c, "")
	c.Flags().StringVar(&p.config, "config", "", "settings file")
	completeFlag(c, "log-level", "debug", "info", "warn", "error")
	completeFlag(c, "log-format", "auto", "text", "json")
	return c
}

func ended(code int, err error) error {
	if err != nil || code == fault.ExitOK {
		return err
	}
	return exited(code)
}
