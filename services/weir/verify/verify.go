package verify

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/control"
)

// Config says what is verified, and how much of it.
type Config struct {
	// Source and Target are URLs: postgres:// or mysql:// (MySQL, MariaDB) of a database server on which schemas may be made, and as
	// target file:// of a folder for Iceberg tables. A PostgreSQL source needs wal_level logical.
	Source, Target string
	// Judge has Iceberg tables read by ClickHouse as well, which has to find the same.
	Judge bool
	// Failure names the classes with commas between, or is "all".
	Failure string
	// Seeds is how often each class runs, Seed the first run's seed; the others follow it.
	Seeds int
	Seed  uint64
	// Rate is the load in transactions per second.
	Rate float64
	// Outage is how long a class that takes a database away does so.
	Outage time.Duration
	// Program is the weir program whose processes are run, Dir an empty folder for them.
	Program, Dir string
	// Command is the command line, for the report.
	Command string
	// Ledger reads the ledgers of sinks whose references are resolved by a function.
	Ledger func(resolve func(ref string) (string, error)) control.ReadLedger
	// Each is told every result as it comes.
	Each func(Result)
}

// Check says what of a Config cannot be, as an error for the person who typed it.
func (c Config) Check() error {
	p, err := pairOf(c.Source, c.Target)
	if err != nil {
		return err
	}
	if c.Judge && p.to != iceberg {
		return fmt.Errorf("--judge reads Iceberg tables, and --target is %s", p.to)
	}
	if c.Seeds < 1 {
		return fmt.Errorf("--seeds %d: at least 1", c.Seeds)
	}
	if c.Rate <= 0 {
		return fmt.Errorf("--rate %g: more than 0", c.Rate)
	}
	_, _, err = choose(c.Failure, p)
	return err
}

// Run verifies. Classes that fail are in the report; an error says that nothing could be verified; one of the
// code CLI_VERIFY_DATABASE that a database cannot be used.
func Run(ctx context.Context, cfg Config) (Report, error) {
	p, err := pairOf(cfg.Source, cfg.Target)
	if err != nil {
		return Report{}, err
	}
	chosen, out, err := choose(cfg.Failure, p)
	if err != nil {
		return Report{}, err
	}
	r := Report{
		Version: ReportVersion, Claim: claim(p), Command: cfg.Command,
		Revision: app.Version(), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Begun: time.Now().UTC().Truncate(time.Millisecond), LeftOut: out, Results: []Result{}, Passed: true,
	}
	if r.Source, r.Target, err = cfg.versions(ctx, p); err != nil {
		return r, err
	}
	r.Claim = claim(pair{brand(r.Source), brand(r.Target)}) // an address does not tell MariaDB from MySQL
	for _, c := range chosen {
		for i := range cfg.Seeds {
			result := perform(ctx, cfg, c, cfg.Seed+uint64(i))
			if ctx.Err() != nil {
				return r, context.Cause(ctx)
			}
			r.Results = append(r.Results, result)
			r.Passed = r.Passed && result.Passed
			cfg.Each(result)
		}
	}
	r.Classes = classes(chosen, r.Results)
	all := summary(r.Results)
	all.Name, r.All = "all", &all
	r.Finished = time.Now().UTC().Truncate(time.Millisecond)
	r.Seconds = seconds(r.Finished.Sub(r.Begun))
	return r, nil
}

func claim(p pair) string { return p.String() + ", exactly once" }

// brand is the name that a version begins with.
func brand(version string) string {
	name, _, _ := strings.Cut(version, " ")
	return name
}

// unusable is the error of a database that the flag names. Errors of the driver have no passwords.
func unusable(err error, flag string) error {
	return fault.Wrap(err, fault.CLIVerifyDatabase, flag, err.Error())
}
