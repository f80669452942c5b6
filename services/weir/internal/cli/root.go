package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/datadir"
)

// Std are the streams of a run.
type Std struct {
	Out, Err io.Writer
}

// settings are the flags every command has.
type settings struct {
	std     Std
	nats    string
	creds   string
	dataDir string
	json    bool
}

func (s *settings) out() output { return output{w: s.std.Out, json: s.json} }

// Run executes one command line and returns its exit code, see docs/errors.md.
func Run(ctx context.Context, args []string, std Std) int {
	s := &settings{std: std}
	root := newRoot(s) //nolint:contextcheck // each command takes the context of the run
	root.SetArgs(args)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return fault.ExitOK
	}
	if code, ok := errors.AsType[exited](err); ok {
		return int(code)
	}
	stop, stopped := errors.AsType[app.StoppedError](context.Cause(ctx))
	if stopped && (errors.Is(err, context.Canceled) || errors.Is(err, app.ErrStopped)) {
		err = fault.New(fault.CLIInterrupted, usedCommand(root, args), stop.Signal.String())
	}
	if _, ok := errors.AsType[*fault.Error](err); !ok && isUsage(err) {
		err = fault.Wrap(err, fault.CLIUsage, strings.Join(args, " "), err.Error(), "command", usedCommand(root, args))
	}
	// A command line that cannot be parsed has not set its flags.
	output{w: std.Err, json: s.json || slices.Contains(args, "--json")}.fail(err)
	if stopped {
		return stop.ExitCode()
	}
	return fault.ExitCode(err)
}

func newRoot(s *settings) *cobra.Command {
	root := &cobra.Command{
		Use:           "weir",
		Short:         "Exactly-once data movement on NATS JetStream",
		Long:          "Weir reads database logs and delivers every committed change, in order and once.\nStart with `weir quickstart`, or `weir up JOB.yaml`.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	f := root.PersistentFlags()
	f.StringVar(&s.nats, "nats", "", "NATS server of the mesh (default: $NATS_URL, else the running `weir up` of --data-dir)")
	f.StringVar(&s.creds, "creds", os.Getenv("NATS_CREDS"), "NATS credentials file (default: $NATS_CREDS)")
	f.StringVar(&s.dataDir, "data-dir", datadir.Default, "directory of `weir up`")
	f.BoolVar(&s.json, "json", false, "answer as one JSON object")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "jobs", Title: "Jobs:"},
		&cobra.Group{ID: "look", Title: "Look inside:"},
	)
	root.AddCommand(
		upCommand(s), serveCommand(s), quickstartCommand(s),
		initCommand(s), validateCommand(s), explainCommand(s), doctorCommand(s), discoverCommand(s), schemaCommand(s), jobCommand(s), statusCommand(s),
		topCommand(s), epochsCommand(s), savepointsCommand(s), dlqCommand(s), tailCommand(s), busCommand(s), versionCommand(s),
	)
	root.AddCommand(supportCommand(s), verifyCommand(s), verifyBusCommand(s))
	completeRest(root)
	return root
}

// group is a command that only holds others. cobra would print its help for a misspelt subcommand and exit with 0.
func group(name, short, id string) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, GroupID: id, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			why := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				why += "; did you mean " + strings.Join(near, " or ") + "?"
			}
			return fault.New(fault.CLIUsage, strings.Join(args, " "), why, "command", cmd.CommandPath())
		},
	}
}

// usageError is an error about the command line itself.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// isUsage tells cobra's own complaints, which have no type, from errors of a command: commands of this package return
// coded errors for everything a user can cause.
func isUsage(err error) bool {
	if _, ok := errors.AsType[usageError](err); ok {
		return true
	}
	text := err.Error()
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "accepts ", "requires ", "required flag", "invalid argument"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

func usedCommand(root *cobra.Command, args []string) string {
	if c, _, err := root.Find(args); err == nil {
		return c.CommandPath()
	}
	return root.Name()
}
