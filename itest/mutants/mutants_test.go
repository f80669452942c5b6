package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
)

// mutant takes one guard away.
type mutant struct {
	guard string
	// file is the product's file below the root; with is put in the place of the only cut in it.
	file, cut, with string
	// pkg is the package of the test run, run its name; red is part of what it must say.
	pkg, run, red string
}

// mutants are the guards of exactly-once, and those behind which they stand.
var mutants = []mutant{
	{
		guard: "fence check at the gate",
		file:  "pkg/task/gate.go",
		cut:   "case fence.Older:\n\t\tp.Admission = Older\n\t\treturn p, nil",
		with:  "case fence.Older:",
		pkg:   "./pkg/task", run: "TestGateFences", red: "TestGateFences",
	},
	{
		guard: "fence check at the ledger",
		file:  "services/sink/internal/core/ledger.go",
		cut:   "case found.Fence != own:",
		with:  "case false:",
		pkg:   "./services/sink/internal/core", run: "TestDecide$", red: "TestDecide",
	},
	{
		guard: "fence check of facts",
		file:  "pkg/job/note.go",
		cut:   "f != s.Head.Fence ||",
		with:  "",
		pkg:   "./pkg/job", run: "TestAcksThatDoNotCount", red: "TestAcksThatDoNotCount",
	},
	{
		guard: "tally check",
		file:  "pkg/epoch/build.go",
		cut:   "if sent != got {",
		with:  "if false {",
		pkg:   "./pkg/epoch", run: "TestBuildRefuses", red: "TestBuildRefuses",
	},
	{
		guard: "CAS on head",
		file:  "pkg/registry/head.go",
		cut:   "r.reg.Update(ctx, bus.HeadKey(h.Job), b, expect)",
		with:  "r.reg.Put(ctx, bus.HeadKey(h.Job), b)",
		pkg:   "./pkg/registry", run: "TestHeadsAreWrittenByCompareAndSwap", red: "written over a revision that is not there",
	},
	{
		guard: "ledger check at commit",
		file:  "services/sink/internal/core/ledger.go",
		cut:   "case found.Ref == prev && ref.Epoch > prev.Epoch:",
		with:  "case ref.Epoch > prev.Epoch:",
		pkg:   "./services/sink/internal/core", run: "TestDecide$", red: "TestDecide",
	},
	{
		guard: "ledger check at claim",
		file:  "pkg/job/ledger.go",
		cut:   "case slices.Contains(allowed, row.Ref):",
		with:  "case slices.Contains(allowed, row.Ref) || true:",
		pkg:   "./pkg/job", run: "TestLedgerIsJudgedAgainstTheChain", red: "TestLedgerIsJudgedAgainstTheChain",
	},
	{
		guard: "commit only after durable",
		file:  "pkg/task/committer.go",
		cut:   "case h.Durable == nil || h.Durable.Epoch < e:",
		with:  "case false:",
		pkg:   "./pkg/task", run: "TestCommitWaitsForTheHead", red: "committed before durable",
	},
	{
		guard: "durable only after stored",
		file:  "pkg/job/run.go",
		cut:   "case a.Manifest != nil && a.Manifest.Epoch == f.Epoch:",
		with:  "case a.Cut != nil && a.Cut.Ref.Epoch == f.Epoch:\n\t\t\ta.Manifest = &Durable{Ref: a.Cut.Ref, Fence: h.Fence, Kind: f.Kind}\n\t\t\th.Durable, h.InFlight, h.Skipped = a.Manifest, nil, 0\n\t\t\tchanged = true\n\t\tcase a.Manifest != nil && a.Manifest.Epoch == f.Epoch:",
		pkg:   "./pkg/job", run: "TestWalkEveryOrder/every_effect_apart", red: "has no manifest",
	},
	{
		guard: "exclusive position, generator",
		file:  "pkg/source/generator/generator.go",
		cut:   "state{Next: r.next, Readers:",
		with:  "state{Next: max(r.next-1, 0), Readers:",
		pkg:   "./pkg/task", run: "TestRecoveryFromEachStepOfAnEpoch", red: "times too often",
	},
	{
		guard: "exclusive position, PostgreSQL's log",
		file:  "services/cdc-postgres/internal/core/tracker.go",
		cut:   "t.end = max(t.end, end)\n\t\tt.from",
		with:  "t.end = max(t.end, final)\n\t\tt.from",
		pkg:   "./services/cdc-postgres/internal/core", run: "TestEveryRowOnceOverRestarts", red: "TestEveryRowOnceOverRestarts",
	},
	{
		guard: "barrier alignment",
		file:  "pkg/epoch/align.go",
		cut:   "if !a.open || !a.passed[channel] {",
		with:  "if true {",
		pkg:   "./pkg/epoch", run: "TestAlign", red: "TestAlign",
	},
	{
		guard: "barrier alignment, in the assembled mesh",
		file:  "pkg/epoch/align.go",
		cut:   "if !a.open || !a.passed[channel] {",
		with:  "if true {",
		pkg:   "./services/weir/internal/schedules", run: "TestSchedules/skewed-readers/[0-3]$", red: "ended for a reason of its own",
	},
	{
		guard: "nextEpoch",
		file:  "pkg/job/run.go",
		cut:   "Epoch: h.NextEpoch, Kind: kind,",
		with:  "Epoch: durableEpoch(h) + 1, Kind: kind,",
		pkg:   "./pkg/job", run: "TestWalkEveryOrder/an_epoch_is_declined", red: "next was",
	},
}

// all are the mutants of both lists.
func all() []mutant { return slices.Concat(mutants, ofInvariants) }

// TestGuards runs every mutant. One after the other: they compile, and a machine has few cores.
func TestGuards(t *testing.T) {
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all() {
		t.Run(strings.ReplaceAll(m.guard, " ", "-"), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", m.args(t, root)...)
			cmd.Env = append(os.Environ(), "RAPID_NOFAILFILE=1") // a counterexample to a mutant is none to the product
			out, err := cmd.CombinedOutput()
			text := string(out)
			switch {
			case err == nil:
				t.Errorf("survived: %s of %s is green without %q\n%s", m.run, m.pkg, m.guard, text)
			case !strings.Contains(text, "--- FAIL: "+name(m.run)) && !strings.Contains(text, "panic:"):
				t.Errorf("the test did not run: %v\n%s", err, text)
			case !strings.Contains(text, m.red):
				t.Errorf("red, but not for %q\n%s", m.red, text)
			}
		})
	}
}

// name is the top-level test of a pattern.
func name(run string) string {
	top, _, _ := strings.Cut(strings.TrimSuffix(run, "$"), "/")
	return top
}

// args are those of the test run that has to be red.
func (m mutant) args(t *testing.T, root string) []string {
	t.Helper()
	return []string{
		"-C", root, "test", "-count=1", "-vet=off", "-timeout=120s", "-overlay", overlay(t, root, cut{m.file, m.cut, m.with}), "-run", "^" + m.run, m.pkg,
	}
}

// cut is one exact replacement in one file of the product.
type cut struct{ file, cut, with string }

// overlay writes the mutated files, and what puts them in their places.
func overlay(t *testing.T, root string, cuts ...cut) string {
	t.Helper()
	dir := t.TempDir()
	texts := make(map[string]string)
	for _, c := range cuts {
		original := filepath.Join(root, c.file)
		if texts[original] == "" {
			text, err := os.ReadFile(original)
			if err != nil {
				t.Fatal(err)
			}
			texts[original] = string(text)
		}
		if n := strings.Count(texts[original], c.cut); n != 1 {
			t.Fatalf("%s has the guard %d times, want once:\n%s", c.file, n, c.cut)
		}
		texts[original] = strings.Replace(texts[original], c.cut, c.with, 1)
	}
	places := make(map[string]string)
	for original, text := range texts {
		places[original] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(places), filepath.Base(original)))
		if err := os.WriteFile(places[original], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(map[string]map[string]string{"Replace": places})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}
