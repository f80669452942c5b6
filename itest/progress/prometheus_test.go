package progress

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// fromRepo is a file of the repository.
func fromRepo(t *testing.T, name ...string) string {
	t.Helper()
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root}, name...)...)
}

// prometheus is a server that reads the metrics of a progress service and judges them by the rules that we ship.
type prometheus struct {
	*harness.Process

	url string
}

const scrapes = `
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - job_name: weir
    honor_labels: true
    static_configs: [{targets: [%q]}]
`

func startPrometheus(t *testing.T, of *mesh.Member) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf(scrapes, fromRepo(t, "compose", "prometheus", "weir.rules.yml"), strings.TrimPrefix(of.HTTP, "http://"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := harness.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	return &prometheus{url: "http://" + addr, Process: harness.StartProcess(t, harness.ProcessConfig{
		Name: "prometheus", Path: filepath.Join(harness.Script(t, "setup-prometheus.sh"), "prometheus"), Dir: dir,
		Args:  []string{"--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", addr, "--log.level", "warn"},
		Ready: harness.HTTPReady("http://" + addr + "/-/ready"),
	})}
}

// ask reads the data of an answer of its API.
func (p *prometheus) ask(ctx context.Context, path string, into any) error {
	body, err := harness.Get(ctx, p.url+"/api/v1/"+path)
	if err != nil {
		return err
	}
	var answer struct {
		Status string
		Data   json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return fmt.Errorf("%s: %s, %w", path, body, err)
	}
	return json.Unmarshal(answer.Data, into)
}

// active waits until an alert of the job waits for its time or fires.
func (p *prometheus) active(t *testing.T, alert string) {
	t.Helper()
	harness.Await(t, 10*time.Second, "alert "+alert, func(ctx context.Context) error {
		var all struct {
			Alerts []struct {
				Labels map[string]string
				State  string
			}
		}
		if err := p.ask(ctx, "alerts", &all); err != nil {
			return err
		}
		for _, a := range all.Alerts {
			if a.Labels["alertname"] == alert && a.Labels["job"] == "shop" {
				return nil
			}
		}
		return fmt.Errorf("active are %v", all.Alerts)
	})
}

// draws asks for what each panel of the dashboard asks for, of a job in which a sink sets rows aside.
func (s *scene) draws(t *testing.T) {
	text, err := os.ReadFile(fromRepo(t, "compose", "grafana", "weir.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("panel %q asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			expr := strings.ReplaceAll(target.Expr, "$job", "shop")
			harness.Await(t, 10*time.Second, "data of panel "+panel.Title, func(ctx context.Context) error {
				var found struct{ Result []json.RawMessage }
				if err := s.alerts.ask(ctx, "query?query="+url.QueryEscape(expr), &found); err != nil {
					return err
				}
				if len(found.Result) == 0 {
					return fmt.Errorf("nothing is found by %s", expr)
				}
				return nil
			})
		}
	}
}

// Prometheus itself reads the rules, and fires each alert when it should and not when it should not, as
// compose/prometheus/weir.rules.test.yml says.
func TestRulesFire(t *testing.T) {
	t.Parallel()
	promtool := filepath.Join(harness.Script(t, "setup-prometheus.sh"), "promtool")
	dir := fromRepo(t, "compose", "prometheus")
	for _, args := range [][]string{{"check", "rules", "weir.rules.yml"}, {"test", "rules", "weir.rules.test.yml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cases := read("weir.rules.test.yml")
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read("weir.rules.yml"), -1) {
		if len(regexp.MustCompile(`alertname: `+m[1]+`\b`).FindAllString(cases, -1)) < 2 {
			t.Errorf("alert %s is not shown both to fire and not to", m[1])
		}
	}
}
