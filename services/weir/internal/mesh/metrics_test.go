package mesh

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// sometimes are metrics that a short quiet run may or may not have.
var sometimes = map[string]bool{
	"weir_window_wait_duration_seconds":    true,
	"weir_coordinator_facts_refused":       true,
	"weir_coordinator_facts_refused_total": true,
	"weir_job_waits":                       true,
	"weir_job_epoch_delay_seconds":         true,
	"weir_job_epoch_durable_age_seconds":   true,
	"weir_progress_reports_refused":        true,
}

var (
	sample = regexp.MustCompile(`^(weir_\w+)(?:\{(.*)\})? `)
	label  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	// plain is what a label may hold: names of a spec, words of ours, phases, codes of faults; no dots, slashes or colons, which
	// tables and positions have.
	plain = regexp.MustCompile(`^([a-z0-9_-]+|[A-Z_]+|WEIR-[A-Z]+-\d+)$`)
)

// Names, units and labels of metrics are a contract: dashboards and alerts are written against them.
func TestNamesOfMetrics(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.submit(shop)
	p.await("shop", committed(3))
	body := p.until("/metrics", "a commit and a look at the job", func(_ int, body string) bool {
		return strings.Contains(body, "weir_sink_commit_duration_seconds_count{") && strings.Contains(body, "weir_job_dead_letters{")
	})
	families := make(map[string]string)
	for line := range strings.Lines(body) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" && strings.HasPrefix(f[2], "weir_") {
			families[f[2]] = f[3]
		}
	}
	labels := make(map[string]map[string]bool)
	for line := range strings.Lines(body) {
		m := sample.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := m[1]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); families[base] == "histogram" {
				name = base
			}
		}
		if labels[name] == nil {
			labels[name] = make(map[string]bool)
		}
		for _, kv := range label.FindAllStringSubmatch(m[2], -1) {
			if strings.HasPrefix(kv[1], "otel_scope_") || kv[1] == "le" {
				continue
			}
			labels[name][kv[1]] = true
			if !plain.MatchString(kv[2]) {
				t.Errorf("%s has %s=%q: not a name of a spec or a word of ours", name, kv[1], kv[2])
			}
		}
	}
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !sometimes[name] {
			fmt.Fprintln(&got, strings.Join(append([]string{name, families[name]}, slices.Sorted(maps.Keys(labels[name]))...), " "))
		}
	}
	golden := filepath.Join("testdata", "metrics.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("metrics are\n%s\nwant\n%s", got.String(), want)
	}
	if !strings.Contains(body, `# HELP weir_task_rows_total Rows that`) {
		t.Error("no help text")
	}
}
