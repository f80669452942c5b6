package progress

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
)

var metricName = regexp.MustCompile(`\bweir_[a-z_]+`)

// What the dashboard and the alerts ask for is what the service exports: every metric, and every label they select or show.
func TestDashboardAndRulesAskForWhatIsThere(t *testing.T) {
	inBubble(t, func(w *world) {
		w.lead(func(h *job.Head) {
			h.Skipped, h.Durable = 1, &job.Durable{Ref: epoch.Ref{Epoch: 1, Digest: "d"}, Fence: 1, At: time.Now()}
		})
		w.say("n1", follower(1, 41, "0/10"), chunks(1, 7))
		h, _ := w.instance("p1", Default())
		pass(2 * time.Second)
		_, exported := get(t, h, "/metrics")
		label := regexp.MustCompile(`\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}|([a-z_]+)=~?"`)
		for _, file := range []string{"grafana/weir.json", "prometheus/weir.rules.yml"} {
			text, err := os.ReadFile(filepath.Join("..", "..", "compose", file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, ".json") && !json.Valid(text) {
				t.Errorf("%s is no JSON", file)
			}
			names := metricName.FindAllString(string(text), -1)
			slices.Sort(names)
			names = slices.Compact(names)
			if len(names) < 8 {
				t.Errorf("%s asks for %v", file, names)
			}
			for _, n := range names {
				if n != "weir_job_dead_letters" && !strings.Contains(exported, "\n"+n+"{") {
					t.Errorf("%s asks for %s", file, n)
				}
			}
			for _, m := range label.FindAllStringSubmatch(strings.ReplaceAll(string(text), `\"`, `"`), -1) {
				if l := m[1] + m[2]; l != "severity" && l != "sink" && !strings.Contains(exported, l+`="`) {
					t.Errorf("%s selects or shows the label %s", file, l)
				}
			}
		}
	})
}
