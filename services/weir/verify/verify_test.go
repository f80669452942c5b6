package verify

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
)

func TestCatalogue(t *testing.T) {
	t.Parallel()
	names := Catalogue()
	first := []string{"task-crash", "checkpoint-restore", "jobmanager-restart", "savepoint-restore", "sink-commit-fault"}
	if len(names) < len(first) || !slices.Equal(names[:len(first)], first) {
		t.Errorf("the catalogue begins with %q", names)
	}
	if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(names) {
		t.Errorf("a name is there twice: %q", names)
	}
	for _, c := range catalogue() {
		if c.trigger == "" || c.mode == "" || c.run == nil {
			t.Errorf("%s is not complete", c.name)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ names, want, wrong string }{
		{"task-crash", "task-crash", ""},
		{"bus-killed, task-crash,bus-killed", "task-crash bus-killed", ""},
		{"all", strings.Join(Catalogue(), " "), ""},
		{"task-crush", "", `no failure class "task-crush"`},
		{"", "", `no failure class ""`},
	} {
		var got []string
		chosen, err := choose(tc.names)
		for _, c := range chosen {
			got = append(got, c.name)
		}
		if strings.Join(got, " ") != tc.want || (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%q chooses %q, %v", tc.names, got, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Config{Source: "postgres://u:canary@h:5432/a", Target: "postgresql://h:5433/b", Failure: "all", Seeds: 1, Rate: 1}
	for _, tc := range []struct {
		name, wrong string
		change      func(*Config)
	}{
		{"good", "", func(*Config) {}},
		{"no source", "--source is missing", func(c *Config) { c.Source = "" }},
		{"no target", "--target is missing", func(c *Config) { c.Target = "" }},
		{"no port", "--source is not of the form", func(c *Config) { c.Source = "postgres://u:canary@h/a" }},
		{"another database", "--target is not of the form", func(c *Config) { c.Target = "mysql://u:canary@h:3306/a" }},
		{"no seeds", "--seeds", func(c *Config) { c.Seeds = 0 }},
		{"no load", "--rate", func(c *Config) { c.Rate = 0 }},
		{"unknown class", "failure class", func(c *Config) { c.Failure = "x" }},
	} {
		cfg := good
		tc.change(&cfg)
		err := cfg.Check()
		switch {
		case tc.wrong == "" && err != nil, tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
			t.Errorf("%s: %v", tc.name, err)
		case err != nil && strings.Contains(err.Error(), "canary"):
			t.Errorf("%s: the password is shown: %v", tc.name, err)
		}
	}
}

func TestDatabaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{
		Source: "postgres://u:canary@127.0.0.1:1/a", Target: "postgres://u:canary@127.0.0.1:1/b", Failure: "task-crash", Seeds: 1, Rate: 1,
	})
	f := fault.Of(err)
	if f.Code != fault.CLIVerifyDatabase || f.Where != "--source" || f.Remedy == "" || strings.Contains(err.Error()+f.Why, "canary") {
		t.Errorf("%+v", f)
	}
}
