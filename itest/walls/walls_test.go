package walls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
)

// plant is one file of the scratch workspace and the walls it must be caught
// by; none for a file that is allowed.
type plant struct {
	file    string
	imports []string
	body    string // statements of a function; no imports of its own
	walls   []string
}

const (
	natsClient = "github.com/nats-io/nats.go"
	natsServer = "github.com/nats-io/nats-server/v2/server"
	meshtest   = "weir.dev/weir/pkg/meshtest"
)

// plants lists the violations and their permitted counterparts, but for those
// of one service against another, see [siblings].
func plants() []plant {
	planted := []plant{
		// pkg imports no service and no test.
		{file: "pkg/rows/a.go", imports: []string{"weir.dev/weir/services/sink"}, walls: []string{"pkg"}},
		{file: "pkg/rows/b_test.go", imports: []string{"weir.dev/weir/itest/flow"}, walls: []string{"pkg"}},
		{file: "pkg/rows/c.go", imports: []string{"weir.dev/weir/pkg/epoch"}},
		{file: "services/sink/d.go", imports: []string{"weir.dev/weir/itest/flow"}, walls: []string{"service"}},
		{file: "services/weir/e.go", imports: []string{"weir.dev/weir/itest/flow"}, walls: []string{"service"}},

		// nats.go has one importer; the server has few.
		{file: "pkg/bus/a.go", imports: []string{natsClient}},
		{file: "pkg/bus/kv/a_test.go", imports: []string{natsClient, natsServer}},
		{file: "pkg/registry/a.go", imports: []string{natsClient + "/jetstream"}, walls: []string{"bus"}},
		{file: "pkg/registry/b_test.go", imports: []string{natsClient}, walls: []string{"bus"}},
		{file: "pkg/busy/a.go", imports: []string{natsClient}, walls: []string{"bus"}},
		{file: "services/weir/a.go", imports: []string{natsClient}, walls: []string{"bus"}},
		{file: "itest/flow/a.go", imports: []string{natsClient}, walls: []string{"bus"}},
		{file: "services/weir/internal/natsd/a.go", imports: []string{natsServer}},
		{file: "pkg/meshtest/a.go", imports: []string{natsServer, "testing"}},
		{file: "itest/cmd/natsd/main.go", imports: []string{natsServer}},
		{file: "pkg/registry/c_test.go", imports: []string{natsServer}},
		{file: "pkg/registry/d.go", imports: []string{natsServer}, walls: []string{"server"}},
		{file: "services/sink/e.go", imports: []string{natsServer}, walls: []string{"server"}},

		// Test support stays out of the products.
		{file: "services/sink/f.go", imports: []string{meshtest}, walls: []string{"test-support"}},
		{file: "services/sink/f_test.go", imports: []string{meshtest, "testing"}},
		{file: "services/sink/g.go", imports: []string{"testing"}, walls: []string{"test-support"}},
		{file: "services/sink/h.go", imports: []string{"testing/fstest"}},
		{file: "services/sink/i.go", imports: []string{"weir.dev/weir/pkg/sink/sinktest"}, walls: []string{"test-support"}},
		{file: "services/sink/j.go", imports: []string{"weir.dev/weir/pkg/source/sourcetest"}, walls: []string{"test-support"}},
		{file: "pkg/sink/sinktest/a.go", imports: []string{"testing", meshtest}},
		{file: "itest/flow/b.go", imports: []string{"testing", meshtest}},

		// Tests do not sleep and do not skip; only commands print and exit.
		{file: "pkg/rows/s_test.go", imports: []string{"time"}, body: "time.Sleep(1)", walls: []string{"sleep"}},
		{file: "pkg/rows/s.go", imports: []string{"time"}, body: "time.Sleep(1)"},
		{file: "pkg/rows/t_test.go", imports: []string{"testing"}, body: `var t testing.TB; t.Skip("x"); t.Skipf("x"); t.SkipNow()`, walls: []string{"skip", "skip", "skip"}},
		{file: "pkg/rows/p.go", imports: []string{"fmt"}, body: `fmt.Println("x"); fmt.Printf("x"); println("x")`, walls: []string{"stdout", "stdout", "stdout"}},
		{file: "pkg/rows/q.go", imports: []string{"fmt", "io"}, body: `fmt.Fprintln(io.Discard, "x")`},
		{file: "pkg/rows/example_rows_test.go", imports: []string{"fmt"}, body: `fmt.Println("x")`},
		{file: "services/sink/k.go", imports: []string{"os", "log"}, body: `log.Fatal("x"); os.Exit(1)`, walls: []string{"exit", "exit"}},
		{file: "pkg/spec/gen/main.go", imports: []string{"os"}, body: `os.Exit(1)`},
		{file: "pkg/meshtest/main.go", imports: []string{"os"}, body: `os.Exit(1)`},
		{file: "services/sink/cmd/sink/main.go", imports: []string{"fmt", "os"}, body: `fmt.Println("x"); os.Exit(1)`},
	}

	// Pure packages: each forbidden import and each look at the clock.
	impure := []string{
		"context", "database/sql", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "net", "net/http",
		"os", "os/exec", "sync", "sync/atomic", "weir.dev/weir/pkg/bus",
	}
	for _, dir := range []string{
		"pkg/epoch", "pkg/fence", "pkg/job", "pkg/plan", "pkg/position", "pkg/cdc/internal/core",
		"services/sink/internal/core", "services/coordinator/internal/core/place",
	} {
		walls := slices.Repeat([]string{"core"}, len(impure))
		planted = append(
			planted,
			plant{file: dir + "/impure.go", imports: impure, walls: walls},
			plant{file: dir + "/impure_test.go", imports: impure},
			plant{file: dir + "/clock.go", imports: []string{"time"}, body: `time.Now(); time.Since(time.Time{}); time.Sleep(1)`, walls: []string{"core", "core", "core"}},
			plant{file: dir + "/clock_test.go", imports: []string{"time"}, body: `time.Now()`},
			plant{file: dir + "/pure.go", imports: []string{"errors", "slices", "time"}, body: `var t time.Time; t.Add(time.Second)`},
		)
	}
	return append(
		planted,
		plant{file: "pkg/epochal/clock.go", imports: []string{"context", "time"}, body: `time.Now()`},
		plant{file: "services/sink/l.go", imports: []string{"context", "os", "time"}, body: `time.Now()`},
	)
}

// siblings plants, for every service of the real tree, an import of every other
// one: forbidden everywhere but in services/weir.
func siblings(services []string) []plant {
	var planted []plant
	for _, from := range services {
		p := plant{file: "services/" + from + "/internal/adapter/siblings.go", imports: []string{"weir.dev/weir/services/" + from}}
		for _, to := range services {
			if to == from {
				continue
			}
			p.imports = append(p.imports, "weir.dev/weir/services/"+to)
			if from != "weir" {
				p.walls = append(p.walls, "service")
			}
		}
		planted = append(planted, p)
	}
	return planted
}

// TestWalls: W1 and W2.
func TestWalls(t *testing.T) {
	t.Parallel()
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	linter := findLinter(t, root)
	services := serviceNames(t, root)
	planted := append(plants(), siblings(services)...)

	scratch := t.TempDir()
	config, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(scratch, ".golangci.yml"), string(config))
	layOut(t, scratch, services, planted)

	got := map[string][]string{}
	for _, module := range []string{"pkg", "services", "itest"} {
		maps.Copy(got, lint(t, linter, filepath.Join(scratch, module)))
	}
	for _, p := range planted {
		slices.Sort(p.walls)
		if !slices.Equal(got[p.file], p.walls) {
			t.Errorf("%s imports %v, calls %q: reported by the walls %v, want %v", p.file, p.imports, p.body, got[p.file], p.walls)
		}
		delete(got, p.file)
	}
	if len(got) > 0 {
		t.Errorf("reported without being planted: %v", got)
	}
}

// findLinter returns the golangci-lint of the version the repository asks for.
func findLinter(t *testing.T, root string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "tools.sh"), "golangci-lint")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("find golangci-lint: %v\n%s", err, stderr.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// serviceNames lists the services of the real tree, with those the plants name.
func serviceNames(t *testing.T, root string) []string {
	t.Helper()
	names := []string{"coordinator", "sink", "weir"}
	entries, err := os.ReadDir(filepath.Join(root, "services"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "testdata" {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// layOut writes the scratch workspace: three modules as ours, one that stands
// for NATS, and the planted files. Every imported package exists, or the linter
// would report that instead.
func layOut(t *testing.T, scratch string, services []string, planted []plant) {
	t.Helper()
	module := func(dir, name string, siblings ...string) {
		var mod strings.Builder
		fmt.Fprintf(&mod, "module %s\n\ngo 1.26\n", name)
		for _, s := range append(siblings, natsClient, "github.com/nats-io/nats-server/v2") {
			version := "v0.0.0"
			if strings.HasSuffix(s, "/v2") {
				version = "v2.0.0"
			}
			fmt.Fprintf(&mod, "require %s %s\nreplace %s => ../%s\n", s, version, s, path.Base(s))
		}
		write(t, filepath.Join(scratch, dir, "go.mod"), mod.String())
	}
	module("pkg", "weir.dev/weir/pkg", "weir.dev/weir/services", "weir.dev/weir/itest")
	module("services", "weir.dev/weir/services", "weir.dev/weir/pkg", "weir.dev/weir/itest")
	module("itest", "weir.dev/weir/itest", "weir.dev/weir/pkg", "weir.dev/weir/services")
	write(t, filepath.Join(scratch, "nats.go", "go.mod"), "module "+natsClient+"\n\ngo 1.26\n")
	write(t, filepath.Join(scratch, "v2", "go.mod"), "module github.com/nats-io/nats-server/v2\n\ngo 1.26\n")

	packages := []string{
		"nats.go", "nats.go/jetstream", "v2/server", "itest/flow", "pkg/bus", "pkg/epoch", "pkg/meshtest",
		"pkg/sink/sinktest", "pkg/source/sourcetest",
	}
	for _, s := range services {
		packages = append(packages, "services/"+s)
	}
	for _, dir := range packages {
		write(t, filepath.Join(scratch, dir, "doc.go"), "package "+packageName(dir)+"\n")
	}
	for i, p := range planted {
		var source strings.Builder
		dir := path.Dir(p.file)
		fmt.Fprintf(&source, "package %s\n\nimport (\n", packageName(dir))
		for _, imported := range p.imports {
			name := "_"
			if strings.Contains(p.body, path.Base(imported)+".") {
				name = ""
			}
			fmt.Fprintf(&source, "\t%s %q\n", name, imported)
		}
		fmt.Fprintf(&source, ")\n\nfunc planted%d() {\n\t%s\n}\n", i, strings.ReplaceAll(p.body, "; ", "\n\t"))
		write(t, filepath.Join(scratch, filepath.FromSlash(p.file)), source.String())
	}
}

func packageName(dir string) string {
	return strings.NewReplacer("-", "", ".", "").Replace(path.Base(dir))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wallName is how every message of a wall in .golangci.yml begins.
var wallName = regexp.MustCompile(`wall ([a-z-]+):`)

// lint runs the two linters that hold the walls in one module and returns the
// names of the walls that reported, sorted, by file.
func lint(t *testing.T, linter, module string) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), linter, "run", "--enable-only", "depguard,forbidigo",
		"--allow-parallel-runners", "--issues-exit-code", "0", "--show-stats=false", "--output.json.path", "stdout", "./...")
	cmd.Dir = module
	// The scratch modules are whole without a network and without the workspace.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("lint %s: %v\n%s%s", module, err, out, stderr.Bytes())
	}
	var report struct {
		Issues []struct {
			FromLinter string
			Text       string
			Pos        struct{ Filename string }
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("read the report of %s: %v\n%s", module, err, out)
	}
	walls := map[string][]string{}
	for _, issue := range report.Issues {
		name := issue.FromLinter + ": " + issue.Text
		if m := wallName.FindStringSubmatch(issue.Text); m != nil {
			name = m[1]
		}
		file := filepath.ToSlash(issue.Pos.Filename)
		walls[file] = append(walls[file], name)
	}
	for _, names := range walls {
		slices.Sort(names)
	}
	return walls
}
