package mutants

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify"
)

// classMutant takes a guard out of the program itself; a failure class of `weir verify` has to find that.
type classMutant struct {
	guard string
	cuts  []cut
	// class runs from PostgreSQL to PostgreSQL, or to Iceberg; red is part of what it must find.
	class   string
	iceberg bool
	seeds   int // 1 when zero; more where one may miss
	red     string
}

// tolerantLog lets an epoch be logged twice, which is a guard of its own.
var tolerantLog = cut{"services/sink/internal/iceberg/sqlledger.go", "$6, $7, $8, $9)`", "$6, $7, $8, $9) ON CONFLICT DO NOTHING`"}

// ofClasses are the mistakes that sinks of others have made.
var ofClasses = []classMutant{
	{
		guard: "commit only after durable",
		cuts: []cut{
			{
				"pkg/registry/manifest.go",
				"return epoch.Decode(stored, ref)",
				"if ref.Digest == \"\" {\nref.Digest = epoch.Digest(stored)\n}\nreturn epoch.Decode(stored, ref)",
			},
			{
				"pkg/task/committer.go",
				"\t\tif err := s.wait(ctx, 0); err != nil {",
				"\t\tif f := s.orders.Head.InFlight; f != nil && f.Epoch > k.done {\n" +
					"if m, err := s.cfg.Records.Manifest(ctx, s.identity.Job, epoch.Ref{Epoch: f.Epoch}); err == nil {\n" +
					"b, err := m.Bytes()\nif err != nil {\nreturn err\n}\n" +
					"if err := k.advance(ctx, epoch.Ref{Epoch: f.Epoch, Digest: epoch.Digest(b)}); err != nil {\nreturn err\n}\n}\n}\n" +
					"if err := s.wait(ctx, 10*time.Millisecond); err != nil {",
			},
			{"pkg/task/committer.go", "case h.Durable == nil || h.Durable.Epoch < e:", "case false:"},
		},
		class: "crash-manifest-to-durable", red: "FAILED|too often|target.s ledger",
	},
	{
		guard: "collapse by key",
		cuts: []cut{{
			"pkg/rows/collapse.go",
			"*last = fateGone\n\tw.ref = r",
			"w.ref = r",
		}},
		class: "task-crash", iceberg: true, red: "final rows",
	},
	{
		guard: "ledger check",
		cuts: []cut{
			{"services/sink/internal/core/ledger.go", "case found.Ref == ref:\n\t\treturn Done", "case found.Ref == ref:\n\t\treturn Apply"},
			{"services/sink/internal/postgres/ledger.go", "clock_timestamp())`", "clock_timestamp()) ON CONFLICT DO NOTHING`"},
		},
		class: "lost-commit-reply", seeds: 4, red: "too often",
	},
	{
		// What a library does that repeats a transaction by itself when its outcome is unknown.
		guard: "no retry by the library",
		cuts: []cut{
			{
				"services/sink/internal/core/ledger.go",
				"case found.Ref == ref:",
				"case found.Ref == ref && Blind:\n\t\treturn Apply\n\tcase found.Ref == ref:",
			},
			{"services/sink/internal/core/ledger.go", "func (v Verdict) String() string {", "var Blind bool\n\nfunc (v Verdict) String() string {"},
			{
				"services/sink/internal/transact/transact.go",
				"\tapplied, lookErr := lookUp(ctx, who, t, commit)",
				"\tcore.Blind = true\n\tdefer func() { core.Blind = false }()\n" +
					"\tif r, _, err := t.Apply(ctx, commit); err == nil {\n\t\treturn r, nil\n\t}\n\tapplied, lookErr := lookUp(ctx, who, t, commit)",
			},
			{"services/sink/internal/postgres/ledger.go", "clock_timestamp())`", "clock_timestamp()) ON CONFLICT DO NOTHING`"},
		},
		class: "lost-commit-reply", seeds: 4, red: "too often",
	},
	{
		// What a sink knows that looks for its epochs in the summaries of snapshots, when those have expired.
		guard: "bookkeeping that outlives snapshots",
		cuts: []cut{
			{
				"services/sink/internal/iceberg/sqlledger.go",
				"SET fence = excluded.fence, updated",
				"SET fence = excluded.fence, epoch = 0, digest = '', updated",
			},
			{
				"services/sink/internal/iceberg/sqlcatalog.go",
				"err = c.ledger.take(ctx, tx, life, own)",
				"err = c.ledger.take(ctx, tx, life, own)\nfound.Ref = core.Row{}.Ref",
			},
			{
				"services/sink/internal/core/ledger.go",
				"case found.Ref == prev && ref.Epoch > prev.Epoch:",
				"case found.Ref == epoch.Ref{}, found.Ref == prev && ref.Epoch > prev.Epoch:",
			},
			tolerantLog,
		},
		class: "lost-commit-reply", iceberg: true, red: "FAILED: WEIR-JOB-004|too often",
	},
}

// TestClasses shows that `weir verify` would find each mistake, by the named class. CI builds one program without its guard; all of
// them: ITEST_MUTANTS=all, or names with commas between.
func TestClasses(t *testing.T) {
	wanted := []string{"commit only after durable"}
	all := os.Getenv("ITEST_MUTANTS")
	if all != "" {
		wanted = strings.Split(all, ",")
	}
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	source := harness.StartPostgres(t, harness.PostgresConfig{})
	target := sync.OnceValue(func() *harness.Postgres { return harness.StartPostgres(t, harness.PostgresConfig{}) }) // for all of them
	for _, m := range ofClasses {
		if all != "all" && !slices.Contains(wanted, m.guard) {
			continue
		}
		t.Run(strings.ReplaceAll(m.guard, " ", "-"), func(t *testing.T) {
			to := "file://" + t.TempDir()
			if !m.iceberg {
				to = target().URL("postgres")
			}
			r := m.verify(t, root, source.URL("postgres"), to)
			var found []string
			for _, one := range r {
				found = append(found, one.Findings...)
				if err := os.RemoveAll(one.Log); err != nil {
					t.Error(err)
				}
			}
			if all := strings.Join(found, "\n"); !regexp.MustCompile(m.red).MatchString(all) {
				t.Errorf("red, but not for %q:\n%s", m.red, all)
			}
		})
	}
}

// verify builds the mutant, runs its class and returns the results, of which one has to be red.
func (m classMutant) verify(t *testing.T, root, source, target string) []verify.Result {
	t.Helper()
	program := filepath.Join(t.TempDir(), "weir")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-overlay", overlay(t, root, m.cuts...), "weir.dev/weir/services/weir/cmd/weir")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	file := filepath.Join(t.TempDir(), "eo.json")
	run := exec.CommandContext(t.Context(), program, "verify", "--source", source, "--target", target, "--failure", m.class, "--seeds", strconv.Itoa(max(m.seeds, 1)), "--report", file)
	run.Dir = t.TempDir()
	out, err := run.CombinedOutput()
	t.Logf("%s", out)
	exit, failed := errors.AsType[*exec.ExitError](err)
	if !failed || exit.ExitCode() != 4 {
		t.Fatalf("survived: %s is %v without %q", m.class, err, m.guard)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report verify.Report
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	return report.Results
}
