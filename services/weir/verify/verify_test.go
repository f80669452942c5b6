package verify

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/verify/audit"
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
		chosen, out, err := choose(tc.names, pair{postgreSQL, postgreSQL})
		if len(out) > 0 {
			t.Errorf("%q leaves out %v", tc.names, out)
		}
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
		{"another database", "--target is not of the form", func(c *Config) { c.Target = "oracle://u:canary@h:1521/a" }},
		{"to MySQL", "", func(c *Config) { c.Target = "mysql://u:canary@h:3306" }},
		{"a folder as source", "--source is not of the form", func(c *Config) { c.Source = "file:///a" }},
		{"MySQL", "", func(c *Config) { c.Source = "mysql://u:canary@h:3306" }},
		{"a lake", "", func(c *Config) { c.Target, c.Judge = "file:///lake", true }},
		{"half a lake", "--target is not of the form", func(c *Config) { c.Target = "file://lake/a" }},
		{"a judge of nothing", "--judge", func(c *Config) { c.Judge = true }},
		{"a class without meaning", "partial-fan-out does not run with", func(c *Config) { c.Target, c.Failure = "file:///lake", "partial-fan-out" }},
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

// What does not run somewhere says why, and the five run everywhere.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	for _, from := range []string{postgreSQL, mySQL} {
		for _, to := range []string{postgreSQL, iceberg} {
			chosen, out, err := choose("all", pair{from, to})
			if err != nil || len(chosen)+len(out) != len(catalogue()) {
				t.Errorf("%s to %s: %d run, %d do not, %v", from, to, len(chosen), len(out), err)
			}
			for i, c := range firstFive() {
				if chosen[i].name != c.name {
					t.Errorf("%s to %s: %s is left out", from, to, c.name)
				}
			}
			for _, c := range out {
				if len(c.Why) < 20 {
					t.Errorf("%s to %s: %s is left out for %q", from, to, c.Name, c.Why)
				}
			}
		}
	}
}

func TestTorn(t *testing.T) {
	t.Parallel()
	row := func(cells ...string) audit.Cells {
		c := make(audit.Cells)
		for i := 0; i < len(cells); i += 2 {
			c[cells[i]] = &cells[i+1]
		}
		return c
	}
	order := func(id, total string) audit.Content { return audit.Content{id: {row("id", id, "total", total)}} }
	items := audit.Content{
		"a": {row("order_id", "1", "quantity", "2", "price", "10.25")},
		"b": {row("order_id", "1", "quantity", "1", "price", "0.50")},
	}
	for _, tc := range []struct {
		name          string
		orders, items audit.Content
		want          int64
	}{
		{"whole", order("1", "21.00"), items, 0},
		{"another total", order("1", "21.01"), items, 1},
		{"no items", order("1", "21.00"), nil, 1},
		{"no order", nil, items, 1},
		{"another order", order("2", "21.00"), items, 2},
	} {
		if got := torn(tc.orders, tc.items); got != tc.want {
			t.Errorf("%s: %d halves, want %d", tc.name, got, tc.want)
		}
	}
}
