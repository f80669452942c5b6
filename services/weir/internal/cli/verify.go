package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/embed"
	"weir.dev/weir/services/weir/verify"
)

func verifyCommand(s *settings) *cobra.Command {
	cfg := verify.Config{Ledger: ledgerReader}
	var file string
	c := &cobra.Command{
		Use:   "verify",
		Short: "Break a mesh in every way under load and prove that each change arrived exactly once",
		Long: "Break a mesh in every way under load and prove that each change arrived exactly once.\n\n" +
			"For each class of failures and each seed it makes scratch schemas at both databases, runs a mesh of separate processes of\n" +
			"this program with a NATS server of its own, and a shop's load, with readers at the target all the while; does the harm, waits\n" +
			"until the mesh has recovered, and compares the databases change by change, read from the source's log by other code. It drops\n" +
			"what it made. Exit code 4 when a class fails.\n\nClasses: " + strings.Join(verify.Catalogue(), ", ") + ".",
		Example: "  weir verify --source postgres://u:p@db:5432/app --target postgres://u:p@dwh:5432/app\n" +
			"  weir verify --source mysql://u:p@db:3306 --target file:///srv/lake --judge\n" +
			"  weir verify --source postgres://u:p@db:5432/app --target postgres://u:p@dwh:5432/app --failure task-crash --seeds 20 --report eo.json",
		GroupID: "look",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := cfg.Check(); err != nil {
				return fault.Wrap(err, fault.CLIUsage, "weir verify", err.Error(), "command", cmd.CommandPath())
			}
			if cfg.Program, err = os.Executable(); err != nil {
				return err
			}
			if cfg.Dir, err = os.MkdirTemp("", "weir-verify-"); err != nil {
				return err
			}
			defer func() { _ = os.Remove(cfg.Dir) }() // what a failed run left in it stays
			cfg.Command = commandLine(cfg, file)
			cfg.Each = func(r verify.Result) {
				if !s.json {
					showResult(s.std.Out, r)
				}
			}
			report, err := verify.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if file != "" {
				if err := writeReport(file, report); err != nil {
					return err
				}
			}
			if err := s.out().show("Verification", report, func(w io.Writer) { showVerification(w, report) }); err != nil {
				return err
			}
			return verified(report)
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Source, "source", os.Getenv("VERIFY_SOURCE"), "`URL` to read changes from, postgres:// or mysql:// (MariaDB too) (default: $VERIFY_SOURCE)")
	f.StringVar(&cfg.Target, "target", os.Getenv("VERIFY_TARGET"), "`URL` to deliver them to, postgres://, mysql:// (MariaDB too) or file:///folder for Iceberg tables (default: $VERIFY_TARGET)")
	f.BoolVar(&cfg.Judge, "judge", false, "have Iceberg tables read by ClickHouse too: node finds the npm package chdb, see NODE_PATH")
	f.StringVar(&cfg.Failure, "failure", "all", "failure classes, with commas between, or all")
	f.IntVar(&cfg.Seeds, "seeds", 1, "runs of each class")
	f.Uint64Var(&cfg.Seed, "seed", rand.Uint64N(1<<32), "the first run's seed; the others follow it (default: another one each time)")
	f.Float64Var(&cfg.Rate, "rate", 100, "load in transactions per second")
	f.DurationVar(&cfg.Outage, "outage", time.Minute, "how long target-unreachable takes the target away")
	f.StringVar(&file, "report", "", "`FILE` for the report as JSON, see schemas/verification.schema.json")
	c.Flag("seed").DefValue = ""
	c.Flag("source").DefValue, c.Flag("target").DefValue = "", "" // they may hold a password
	completeFlag(c, "failure", append(verify.Catalogue(), "all")...)
	return c
}

// verified is the error of a report that did not pass.
func verified(r verify.Report) error {
	var names []string
	for _, c := range r.Classes {
		if c.Failed > 0 {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	e := fault.New(fault.CLIVerifyFailed, "weir verify", "failed: "+strings.Join(names, ", "))
	e.Remedy = "Read the findings of each failed run; the logs of its processes are kept. `weir verify --failure CLASS --seed N` repeats one."
	return e
}

// commandLine is what repeats a verification, without passwords.
func commandLine(cfg verify.Config, file string) string {
	line := fmt.Sprintf("weir verify --source %s --target %s --failure %s --seeds %d --seed %d --rate %g --outage %s",
		redactURL(cfg.Source), redactURL(cfg.Target), cfg.Failure, cfg.Seeds, cfg.Seed, cfg.Rate, cfg.Outage)
	if cfg.Judge {
		line += " --judge"
	}
	if file != "" {
		line += " --report " + file
	}
	return line
}

// writeReport writes a report whole or not at all.
func writeReport(file string, r verify.Report) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(r)
	if err == nil {
		err = os.WriteFile(file+".new", b.Bytes(), 0o644)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fault.Wrap(err, fault.CLINoFile, file, err.Error(), "file", filepath.Base(file))
	}
	return nil
}

func showResult(w io.Writer, r verify.Result) {
	word := "passed"
	if !r.Passed {
		word = "FAILED"
	}
	fmt.Fprintf(w, "%s  %-28s seed %-11d %5.1f s  %s\n", word, r.Class, r.Seed, r.Seconds, r.Run)
	for _, f := range r.Findings {
		fmt.Fprintln(w, "        "+strings.ReplaceAll(f, "\n", "\n        "))
	}
	if r.Log != "" {
		fmt.Fprintln(w, "        logs of its processes: "+r.Log)
	}
}

func showVerification(w io.Writer, r verify.Report) {
	fmt.Fprintf(w, "\n%s: %s; %s; %s\n", r.Claim, r.Source, r.Target, r.Revision)
	row(w, "CLASS", "RUNS", "PASSED", "DETECT p50/p95", "NEXT DURABLE p50/p95", "RECONCILED p50/p95")
	all := slices.Clone(r.Classes)
	if r.All != nil {
		all = append(all, *r.All)
	}
	for _, c := range all {
		row(w, c.Name, c.Runs, c.Runs-c.Failed, spreadText(c.Detect), spreadText(c.Durable), spreadText(c.Reconciled))
	}
	fmt.Fprintf(w, "seconds from the fault on; %d runs in %.0f s\n%s\n", len(r.Results), r.Seconds, r.Command)
	for _, c := range r.LeftOut {
		fmt.Fprintf(w, "not run: %s, since %s\n", c.Name, c.Why)
	}
}

func spreadText(s *verify.Spread) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f / %.2f", s.Median, s.P95)
}

// verifyBusCommand is the NATS server that a verification kills.
func verifyBusCommand(s *settings) *cobra.Command {
	var cfg embed.Config
	c := &cobra.Command{
		Use:     "verify-bus",
		Short:   "The NATS server of a verification",
		Example: "  weir verify-bus --listen 127.0.0.1:4222 --store /tmp/bus",
		Hidden:  true,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg.Logger = slog.New(slog.NewJSONHandler(s.std.Err, nil))
			server, err := embed.Start(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			<-cmd.Context().Done()
			server.Stop()
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:4222", "`address` for clients")
	f.StringVar(&cfg.Monitor, "http", "", "`address` of the server's own monitoring")
	f.Int64Var(&cfg.MaxStore, "max-store", 0, "limit of all streams in `bytes`; 0 is the disk's own")
	f.StringVar(&cfg.StoreDir, "store", "", "`folder` of its streams")
	_ = c.MarkFlagRequired("store") // the only error is a flag that is not there
	return c
}
