package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// offers asks as a shell would and returns what is offered, without the descriptions, and the directive.
func offers(t *testing.T, args ...string) (values []string, directive string) {
	t.Helper()
	r := run(t, append([]string{"__complete"}, args...)...)
	if r.code != 0 {
		t.Fatalf("completion of %q: exit %d\n%s", args, r.code, r.err)
	}
	for l := range strings.Lines(r.out) {
		l = strings.TrimSpace(l)
		if d, ok := strings.CutPrefix(l, ":"); ok {
			return values, d
		}
		value, _, _ := strings.Cut(l, "\t")
		values = append(values, value)
	}
	t.Fatalf("completion of %q has no directive:\n%s", args, r.out)
	return nil, ""
}

// offersLive asks again while nothing is offered: a shell is not kept waiting, and a busy machine may be late once.
func offersLive(t *testing.T, args ...string) (values []string, directive string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		if values, directive = offers(t, args...); len(values) > 0 {
			break
		}
	}
	return values, directive
}

// noFiles is the directive that keeps a shell from offering files, with or without the order kept.
func noFiles(directive string) bool { return directive == "4" || directive == "36" }

// TestEveryArgumentIsCompleted holds for every command: names of jobs come from the mesh, files are offered only where a
// command reads one.
func TestEveryArgumentIsCompleted(t *testing.T) {
	t.Parallel()
	w := startMesh(t)
	w.ok(t, "job", "submit", specFile(t, "shop", "rate: 200"))
	w.ok(t, "status", "shop", "--wait-for", "caught-up", "--timeout", "20s")
	named := 0
	eachCommand(newRoot(&settings{}), func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		if c.HasSubCommands() || c.Name() == "help" || slices.Contains(path, "completion") {
			return
		}
		ask := offers
		if strings.Contains(c.Use, "NAME") {
			ask = offersLive
		}
		values, directive := ask(t, slices.Concat([]string{"--nats", w.url}, path, []string{""})...)
		switch use := c.Use; {
		case strings.Contains(use, "NAME"):
			named++
			if !slices.Contains(values, "shop") || !noFiles(directive) {
				t.Errorf("weir %s offers %q, directive %s", use, values, directive)
			}
		case strings.Contains(use, "FILE") || strings.Contains(use, ".yaml"):
			if !slices.Contains(values, "yaml") {
				t.Errorf("weir %s offers %q, directive %s", use, values, directive)
			}
		case !noFiles(directive):
			t.Errorf("weir %s lets the shell offer files", use)
		}
	})
	if named < 10 {
		t.Errorf("%d commands take a NAME: the test looks at nothing", named)
	}
	if values, _ := offersLive(t, "--nats", w.url, "epochs", "show", "shop", ""); len(values) == 0 || strings.Trim(strings.Join(values, ""), "0123456789") != "" {
		t.Errorf("epochs show offers %q", values)
	}
	if values, _ := offersLive(t, "--nats", w.url, "tail", ""); !slices.Equal(values, []string{"shop/nowhere"}) {
		t.Errorf("tail offers %q", values)
	}
	if more, _ := offers(t, "--nats", w.url, "epochs", "show", "shop", "1", ""); len(more) != 0 {
		t.Errorf("a second epoch is offered: %q", more)
	}
	if dirs, directive := offers(t, "job", "list", "--data-dir", ""); len(dirs) != 0 || directive != "16" {
		t.Errorf("--data-dir offers %q, directive %s", dirs, directive)
	}
}
