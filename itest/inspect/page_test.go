package inspect

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// job is the one of the page.
const job = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms}
sources:
  gen: {type: generator, rate: 500, readers: 2}
sinks:
  lake: {from: [gen], type: blackhole, writers: 2}
`

// pageLife is the life that the page shows; every real one is another.
const pageLife = "4e5aa2f99b3ffe3a"

// line is a command of the page and a word that its output has.
type line struct{ command, shows string }

var lineForm = regexp.MustCompile(`^(\S.*?)\s{2,}# (.+)$`)

// page reads the commands of docs/inspect.md: all lines of all blocks of shell.
func page(t *testing.T) []line {
	t.Helper()
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "inspect.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	inside := false
	for l := range strings.Lines(string(text)) {
		l = strings.TrimRight(l, "\n")
		switch m := lineForm.FindStringSubmatch(l); {
		case strings.HasPrefix(l, "```"):
			inside = l == "```sh"
		case inside && m == nil:
			t.Errorf("%q does not say what it shows", l)
		case inside:
			lines = append(lines, line{m[1], m[2]})
		}
	}
	if len(lines) < 25 {
		t.Fatalf("the page has %d commands", len(lines))
	}
	return lines
}

// ⚑ Whoever pastes a line of the page sees what the page says; and `weir bus` prints lines of the page, with the names of
// the job that was asked for.
func TestThePage(t *testing.T) {
	t.Parallel()
	m := mesh.Start(t, mesh.Config{Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}})
	m.Submit(t, "shop", job)
	m.CaughtUp(t, "shop")
	s := newShell(t, m.URL)
	lines := page(t)
	life := s.must(t, `nats kv get weir_registry jobs.shop.head --raw`)
	var head struct{ Life string }
	if err := json.Unmarshal([]byte(life), &head); err != nil || head.Life == "" {
		t.Fatalf("no life: %v\n%s", err, life)
	}
	for _, l := range lines {
		out, exit := s.run(t, strings.ReplaceAll(l.command, pageLife, head.Life))
		if exit != 0 || !strings.Contains(out, l.shows) {
			t.Errorf("%s\nexit %d, want %q in\n%s", l.command, exit, l.shows, out)
		}
	}

	var printed []struct{ Command, Shows string }
	if err := m.Must(t, "bus", "shop", "--json").Data(&printed); err != nil || len(printed) < 8 {
		t.Fatalf("%+v, %v", printed, err)
	}
	for _, p := range printed {
		onPage := strings.ReplaceAll(p.Command, head.Life, pageLife)
		if !slices.ContainsFunc(lines, func(l line) bool { return l.command == onPage }) {
			t.Errorf("the page lacks %s", onPage)
		}
		s.must(t, p.Command)
	}
}
