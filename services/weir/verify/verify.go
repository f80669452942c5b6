package verify

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/control"
)

// Config says what is verified, and how much of it.
type Config struct {
	// Source and Target are PostgreSQL URLs of databases in which schemas may be made; the source needs wal_level logical.
	Source, Target string
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

	// beforeAudit is for tests: it harms the target when all has arrived, which the audit must find.
	beforeAudit func(context.Context, scratch) error
}

// Check says what of a Config cannot be, as an error for the person who typed it.
func (c Config) Check() error {
	for _, v := range []struct{ name, value string }{{"--source", c.Source}, {"--target", c.Target}} {
		u, err := url.Parse(v.value)
		switch {
		case v.value == "":
			return fmt.Errorf("%s is missing", v.name)
		case err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Port() == "":
			return fmt.Errorf("%s is not of the form postgres://user:password@host:port/database", v.name)
		}
	}
	if c.Seeds < 1 {
		return fmt.Errorf("--seeds %d: at least 1", c.Seeds)
	}
	if c.Rate <= 0 {
		return fmt.Errorf("--rate %g: more than 0", c.Rate)
	}
	_, err := choose(c.Failure)
	return err
}

// Run verifies. Classes that fail are in the report; an error says that nothing could be verified; one of the
// code CLI_VERIFY_DATABASE that a database cannot be used.
func Run(ctx context.Context, cfg Config) (Report, error) {
	chosen, err := choose(cfg.Failure)
	if err != nil {
		return Report{}, err
	}
	r := Report{
		Version: ReportVersion, Claim: "PostgreSQL -> weir -> PostgreSQL, exactly once", Command: cfg.Command,
		Revision: app.Version(), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Begun: time.Now().UTC().Truncate(time.Millisecond), Results: []Result{}, Passed: true,
	}
	if r.Source, err = serverVersion(ctx, cfg.Source); err != nil {
		return r, unusable(err, "--source")
	}
	if r.Target, err = serverVersion(ctx, cfg.Target); err != nil {
		return r, unusable(err, "--target")
	}
	level, err := value[string](ctx, cfg.Source, "SHOW wal_level")
	if err == nil && level != "logical" {
		err = fmt.Errorf("wal_level is %s", level)
	}
	if err != nil {
		return r, unusable(err, "--source")
	}
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
	r.Finished = time.Now().UTC().Truncate(time.Millisecond)
	r.Seconds = seconds(r.Finished.Sub(r.Begun))
	return r, nil
}

// unusable is the error of a database that the flag names. Errors of the driver have no passwords.
func unusable(err error, flag string) error {
	return fault.Wrap(err, fault.CLIVerifyDatabase, flag, err.Error())
}

func serverVersion(ctx context.Context, url string) (string, error) {
	v, err := value[string](ctx, url, "SHOW server_version")
	return "PostgreSQL " + v, err
}
