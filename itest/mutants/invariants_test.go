package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
)

// ofInvariants are the guards of those of the fifteen invariants that the list above does not reach.
var ofInvariants = []mutant{
	{
		guard: "state hangs on names",
		file:  "pkg/plan/model.go",
		cut:   "writers := VertexID(s.Name)",
		with:  `writers := VertexID(fmt.Sprintf("%s%d", s.Name, len(m.Vertices)))`,
		pkg:   "./pkg/plan", run: "TestI1StateHangsOnNames", red: "more stages: the",
	},
	{
		guard: "owner of a key group",
		file:  "pkg/rows/group.go",
		cut:   "wide := more * (each + 1);",
		with:  "wide := more * each;",
		pkg:   "./pkg/rows", run: "TestI2GroupRanges", red: "in the range of",
	},
	{
		guard: "digest of a plan",
		file:  "pkg/registry/plan.go",
		cut:   "got != ref.Digest {",
		with:  "false {",
		pkg:   "./pkg/registry", run: "TestPlansAreWrittenOnceAndChecked", red: "TestPlansAreWrittenOnceAndChecked",
	},
	{
		guard: "no row between snapshot and barrier",
		file:  "pkg/task/reader.go",
		cut:   "p.Envelope.Epoch, about, r.Snapshot)",
		with: "p.Envelope.Epoch, about, func(n epoch.ID) (source.Cut, error) {\n" +
			"c, err := r.Snapshot(n)\nif err == nil {\n_, err = r.Poll(ctx, out, s.box.wake)\n}\nreturn c, err\n})",
		pkg: "./pkg/task", run: "TestI4TheCutIsWhereTheBarrierIs", red: "before its barrier",
	},
	{
		guard: "restore from the newest durable epoch",
		file:  "pkg/job/decide.go",
		cut:   "ref.Restore = h.Durable",
		with:  "ref.Restore = nil",
		pkg:   "./pkg/job", run: "TestWalkEveryOrder/a_process_dies", red: "TestWalkEveryOrder",
	},
	{
		guard: "levels of sinks",
		file:  "pkg/plan/connector.go",
		cut:   "return l == Transactional || l == Ordered",
		with:  "return true",
		pkg:   "./pkg/plan", run: "TestI7EveryCombinationIsJudged", red: "is exactly once: true",
	},
	{
		guard: "guarantee of a job",
		file:  "pkg/plan/model.go",
		cut:   "if m.Guarantee != ExactlyOnce && m.Guarantee != AtLeastOnce {",
		with:  "if false {",
		pkg:   "./pkg/plan", run: "TestI7EveryCombinationIsJudged", red: `, "": <nil>`,
	},
	{
		guard: "a change is another attempt",
		file:  "pkg/job/order.go",
		cut:   "return s.attempt(m, h, r, 0)",
		with:  "return s.write(m, h)",
		pkg:   "./pkg/job", run: "TestI10AChangeIsAnotherAttempt", red: "the change begins with",
	},
	{
		guard: "capability of a node",
		file:  "pkg/plan/deploy.go",
		cut:   "n.Can(u.capability) && n.Free",
		with:  "n.Free",
		pkg:   "./pkg/plan", run: "TestNoCapacityNamesTheService", red: "TestNoCapacityNamesTheService",
	},
	{
		guard: "a commit that is repeated",
		file:  "services/sink/internal/core/ledger.go",
		cut:   "case found.Ref == ref:\n\t\treturn Done",
		with:  "",
		pkg:   "./services/sink/internal/core", run: "TestDecide$", red: "TestDecide",
	},
	{
		guard: "windows of a job",
		file:  "pkg/plan/window.go",
		cut:   "min(maxChannelWindow, maxJobWindow/int64(max(channels, 1)))",
		with:  "int64(maxChannelWindow)",
		pkg:   "./pkg/plan", run: "TestI14NoDeploymentWithoutWindow", red: "more channels than windows",
	},
	{
		guard: "room in a window",
		file:  "pkg/task/window.go",
		cut:   "w.bytes+size <= w.limit.Bytes",
		with:  "true",
		pkg:   "./pkg/task", run: "TestWindowBoundsWhatIsUnconsumed", red: "bytes unconsumed",
	},
	{
		guard: "a drain that ran out of time",
		file:  "pkg/job/decide.go",
		cut:   "return s.fail(m, s.draft(), codeReason(fault.JobDrainTimeout,",
		with:  "return s.end(m, s.draft(), Finished, codeReason(fault.JobDrainTimeout,",
		pkg:   "./pkg/job", run: "TestDrainTimeoutIsResumable", red: "TestDrainTimeoutIsResumable",
	},
	{
		guard: "cancelled and not finished",
		file:  "pkg/job/decide.go",
		cut:   "return s.end(m, s.draft(), Cancelled,",
		with:  "return s.end(m, s.draft(), Finished,",
		pkg:   "./pkg/job", run: "TestI15EveryEndHasItsMode", red: "the next record is",
	},
}

// page is the table that people read.
const page = "docs/invariants.md"

// A row of the table: number, what it says, tests as `folder Name`, mutants as `guard`.
var (
	row    = regexp.MustCompile(`(?m)^\| I(\d+) \|([^|]*)\|([^|]*)\|([^|]*)\|$`)
	quoted = regexp.MustCompile("`([^`]+)`")
)

// TestPageOfInvariants: the page names each of the fifteen invariants, tests that exist and mutants that run, and says
// plainly where something is not built yet.
func TestPageOfInvariants(t *testing.T) {
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var guards []string
	for _, m := range all() {
		guards = append(guards, m.guard)
	}
	var seen, named []string
	for _, r := range row.FindAllStringSubmatch(string(text), -1) {
		number, says, tests, cuts := r[1], r[2], r[3], quoted.FindAllStringSubmatch(r[4], -1)
		seen = append(seen, number)
		for _, test := range quoted.FindAllStringSubmatch(tests, -1) {
			folder, name, _ := strings.Cut(test[1], " ")
			if !declared(t, filepath.Join(root, folder), name) {
				t.Errorf("I%s: there is no test %q", number, test[1])
			}
		}
		for _, cut := range cuts {
			named = append(named, cut[1])
			if !slices.Contains(guards, cut[1]) {
				t.Errorf("I%s: there is no mutant %q", number, cut[1])
			}
		}
		if len(cuts) == 0 && !strings.Contains(says, "Not built") {
			t.Errorf("I%s has no mutant", number)
		}
	}
	for _, m := range ofInvariants {
		if !slices.Contains(named, m.guard) {
			t.Errorf("%s does not name the mutant %q", page, m.guard)
		}
	}
	var want []string
	for n := range 15 {
		want = append(want, fmt.Sprint(n+1))
	}
	if !slices.Equal(seen, want) {
		t.Errorf("%s has the invariants %v", page, seen)
	}
}

// declared reports whether a folder has a test of that name.
func declared(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
