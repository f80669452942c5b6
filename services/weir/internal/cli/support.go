package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/weir/internal/busdoctor"
	"weir.dev/weir/services/weir/internal/support"
)

// bundled is what `weir support-bundle` answers.
type bundled struct {
	File string `json:"file"`
	support.Index
}

func supportCommand(s *settings) *cobra.Command {
	var file string
	var events, epochs int
	c := &cobra.Command{
		Use:   "support-bundle [NAME]",
		Short: "Pack what somebody needs who helps from afar into one file, without secrets and values of rows",
		Long: "Pack versions, specs (redacted), records, the newest manifests and events, streams, consumers, leases, the doctor's " +
			"findings about NATS, and metrics and profiles of the processes that can be reached, into one gzipped tar. Secrets and " +
			"values of rows are left out: of manifests the state and the staged data, of dead letters all but their number.\n\n" +
			"Without a name it holds all jobs. What could not be read is in index.json, with the reason.",
		Example: "  weir support-bundle shop\n  weir support-bundle -o weir.tar.gz",
		GroupID: "look",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			r := s.supportRequest(c)
			r.Events, r.Epochs = events, epochs
			if len(args) == 1 {
				r.Job = args[0]
				if _, err := c.Head(ctx, r.Job); err != nil {
					return err
				}
			}
			if file == "" {
				file = "weir-support-" + time.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
			}
			made, err := writeBundle(ctx, file, r)
			if err != nil {
				return err
			}
			return s.out().show("Bundle", made, func(w io.Writer) { showBundle(w, made) })
		}),
	}
	c.Flags().StringVarP(&file, "out", "o", "", "file to write; one that is there is not overwritten (default: weir-support-<time>.tar.gz)")
	c.Flags().IntVar(&events, "events", 1000, "newest events of each job")
	c.Flags().IntVar(&epochs, "epochs", 10, "newest manifests of each job")
	return c
}

func (s *settings) supportRequest(c session) support.Request {
	host := versionNow()
	return support.Request{
		Conn: c.conn, Control: c.Client,
		Versions:    map[string]any{"weir": host, "os": runtime.GOOS, "arch": runtime.GOARCH, "server": c.conn.ServerVersion()},
		Environment: namesSet(os.Environ()),
		Findings: func(ctx context.Context) ([]preflight.Finding, error) {
			p, err := s.patient(ctx, "")
			if err != nil {
				return nil, err
			}
			return busdoctor.Examine(p), nil
		},
		Status: func(ctx context.Context, name string) (any, error) { return c.Status(ctx, name) },
	}
}

// namesSet lists the variables that Weir and its connection read, without their values.
func namesSet(environ []string) []string {
	names := []string{}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "WEIR_") || strings.HasPrefix(name, "NATS_") || strings.HasPrefix(name, "OTEL_") || strings.HasPrefix(name, "GO") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// writeBundle writes a file that only its owner can read, whole or not at all.
func writeBundle(ctx context.Context, file string, r support.Request) (bundled, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return bundled{}, fault.Wrap(err, fault.CLINoFile, file, err.Error(), "file", file)
	}
	index, err := support.Write(ctx, f, r)
	if err = errors.Join(err, f.Close()); err != nil {
		return bundled{}, errors.Join(err, os.Remove(file))
	}
	return bundled{File: file, Index: index}, nil
}

func showBundle(w io.Writer, b bundled) {
	total := 0
	for _, f := range b.Files {
		total += f.Bytes
	}
	fmt.Fprintf(w, "%s: %d files, %d KiB unpacked\n", b.File, len(b.Files), total>>10)
	for _, m := range b.Missing {
		fmt.Fprintf(w, "missing: %s: %s\n", m.Name, oneLine(m.Why))
	}
	fmt.Fprintln(w, "It holds no secrets and no values of rows, and names of hosts, tables and columns: look at it before you send it.")
}
