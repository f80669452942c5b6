package cli

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
)

func eachCommand(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		eachCommand(sub, do)
	}
}

func TestEveryCommandSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	eachCommand(newRoot(&settings{}), func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help %q", c.CommandPath(), c.Short)
		}
		if !c.HasSubCommands() && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for l := range strings.SplitSeq(c.Example, "\n") {
			if l != "" && !strings.HasPrefix(l, "  weir ") {
				t.Errorf("%s: example %q", c.CommandPath(), l)
			}
			if l != "" {
				resolves(t, c.CommandPath()+", example", strings.TrimSpace(l))
			}
		}
		r := run(t, append(strings.Fields(c.CommandPath())[1:], "--help")...)
		if r.code != 0 || !strings.Contains(r.out, "Usage:") {
			t.Errorf("%s --help: exit %d\n%s%s", c.CommandPath(), r.code, r.out, r.err)
		}
	})
}

var quoted = regexp.MustCompile("`(weir [^`]*)`")

// TestRemediesNameCommandsThatExist holds the table of errors against the commands of this build, flags included.
func TestRemediesNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	found := 0
	for _, e := range fault.Table() {
		for _, m := range quoted.FindAllStringSubmatch(e.Remedy, -1) {
			resolves(t, string(e.Code), m[1])
			found++
		}
	}
	if found == 0 {
		t.Fatal("no remedy names a command: the test proves nothing")
	}
}

// resolves checks that a line of text is a command with arguments and flags it takes.
func resolves(t *testing.T, where, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " > ")
	words := strings.Fields(line)[1:]
	root := newRoot(&settings{})
	c, rest, err := root.Find(words)
	if err != nil || c == root || c.HasSubCommands() {
		t.Errorf("%s names %q: %v", where, line, err)
		return
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("%s names %q: %v", where, line, err)
		return
	}
	// A remedy may name a command without its arguments; what it names must be taken.
	if args := c.Flags().Args(); len(args) > 0 && c.Args != nil {
		if err := c.Args(c, args); err != nil {
			t.Errorf("%s names %q: %v", where, line, err)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		exit int
		code fault.Code
	}{
		{[]string{"fly"}, 2, fault.CLIUsage},
		{[]string{"job", "sumbit", "x"}, 2, fault.CLIUsage},
		{[]string{"epochs", "delete"}, 2, fault.CLIUsage},
		{[]string{"status", "--fast"}, 2, fault.CLIUsage},
		{[]string{"job", "submit"}, 2, fault.CLIUsage},
		{[]string{"bus", "a", "b"}, 2, fault.CLIUsage},
		{[]string{"status", "--timeout", "soon"}, 2, fault.CLIUsage},
		{[]string{"serve", "butler"}, 2, fault.CLIUsage},
		{[]string{"tail", "shop/"}, 2, fault.CLIUsage},
		{[]string{"validate", "no-such-file.yaml"}, 2, fault.CLINoFile},
		{[]string{"status", "--data-dir", "no-such-dir"}, 3, fault.CLINotRunning},
		{[]string{"job", "list", "--nats", "nats://u:canary-pw@127.0.0.1:1"}, 3, fault.BusUnreachable},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			t.Parallel()
			r := run(t, append(tc.args, "--json")...)
			wantError(t, r, tc.exit, tc.code)
			if e := errorOf(t, r); e.What == "" || e.Why == "" || e.Remedy == "" || strings.Contains(e.Remedy, "<command>") {
				t.Errorf("an error for people must say what, why and what to do: %+v", e)
			}
			if strings.Contains(r.err, "canary-pw") {
				t.Errorf("the password is printed:\n%s", r.err)
			}
			text := run(t, tc.args...)
			if text.code != tc.exit || !strings.HasPrefix(text.err, "error "+string(tc.code)) || strings.Contains(text.err, "canary-pw") {
				t.Errorf("without --json: exit %d\n%s", text.code, text.err)
			}
		})
	}
}

func TestASpecsProblemsHavePositions(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "bad.yaml", "apiVersion: weir/v1\njob: bad\nsources:\n  gen: {type: generatr}\nsinks:\n  out: {from: [gen], type: blackhole, mode: upsrt}\n")
	r := run(t, "validate", file, "--json")
	wantError(t, r, 2, fault.SpecInvalid)
	e := errorOf(t, r)
	if len(e.Problems) < 2 {
		t.Fatalf("%d problems, want all of them: %+v", len(e.Problems), e.Problems)
	}
	for _, p := range e.Problems {
		if p.Line == 0 || p.Column == 0 || p.Path == "" {
			t.Errorf("problem without a position: %+v", p)
		}
	}
	if e.Problems[0].Line != 4 || e.Problems[0].Suggest != "generator" {
		t.Errorf("first problem: %+v", e.Problems[0])
	}
}

func TestValidateNeedsNothing(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "shop.yaml", "apiVersion: weir/v1\njob: shop\nsources: {gen: {type: generator}}\n"+
		"sinks: {db: {from: [gen], type: postgres, url: \"${WEIR_TEST_UNSET}\", schema: s, mode: append}}\n")
	r := run(t, "validate", file, "--json")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.err)
	}
	v := data[validated](t, r.out)
	if v.Job != "shop" || len(v.Subtasks) != 4 {
		t.Errorf("%+v", v)
	}
	if text := run(t, "validate", file); !strings.Contains(text.out, filepath.Base(file)+" is valid: job shop, 4 subtasks") {
		t.Errorf("%s", text.out)
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		r := run(t, "completion", shell)
		if r.code != 0 || !strings.Contains(r.out, "__complete") {
			t.Errorf("%s: exit %d, %d bytes\n%s", shell, r.code, len(r.out), r.err)
		}
	}
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"caught-up", []string{"status", "--wait-for", ""}},
		{"cdc-postgres", []string{"serve", ""}},
		{"yaml", []string{"validate", ""}},
		{"drain", []string{"job", "d"}},
	} {
		if r := run(t, append([]string{"__complete"}, tc.args...)...); !strings.Contains(r.out, tc.want) {
			t.Errorf("completion of %v offers\n%s", tc.args, r.out)
		}
	}
	if r := run(t, "__complete", "--data-dir", "no-such-dir", "job", "get", ""); r.code != 0 || strings.Contains(r.out, "error") {
		t.Errorf("completion without a mesh: exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestSchemaIsJSON(t *testing.T) {
	t.Parallel()
	if r := run(t, "schema"); r.code != 0 || !json.Valid([]byte(r.out)) {
		t.Errorf("exit %d, %d bytes", r.code, len(r.out))
	}
}
