package mesh

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const canary = "canary-7d1e0b"

const unreachable = `
apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
sources:
  gen: {type: generator, rate: 100}
sinks:
  lake: {from: [gen], type: postgres, url: "postgres://weir:` + canary + `@127.0.0.1:1/lake?connect_timeout=1"}
`

// A password in a spec shows in nothing that the process says while the target it is for cannot be reached.
func TestNoSecretIsTold(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.submit(unreachable)
	p.until("/metrics", "a retried commit or a failed subtask", func(_ int, body string) bool {
		for line := range strings.Lines(body) {
			f := strings.Fields(line)
			retried := strings.HasPrefix(line, "weir_commit_retries_total{") || strings.HasPrefix(line, "weir_node_subtasks_failed_total{")
			if retried && f[len(f)-1] != "0" {
				return true
			}
		}
		return false
	})
	for _, path := range []string{"/metrics", "/readyz", "/livez", "/debug/pprof/cmdline"} {
		if _, body := p.get(path); strings.Contains(body, canary) {
			t.Errorf("%s shows the password:\n%s", path, body)
		}
	}
	if !strings.Contains(p.log.String(), "lake") {
		t.Fatal("the log does not speak of the sink: the test proves nothing")
	}
	for _, line := range p.records() {
		if strings.Contains(line, canary) {
			t.Errorf("the log shows the password: %s", line)
		}
	}
}

// A line of the log is one JSON object: its keys are told once, its message is a constant in lower case, and an error is
// under one key.
func TestLinesOfTheLog(t *testing.T) {
	t.Parallel()
	p := start(t)
	p.submit(shop)
	p.await("shop", committed(20))
	lines := p.records()
	per := make(map[string]int)
	for _, line := range lines {
		var names []string
		d := json.NewDecoder(strings.NewReader(line))
		depth, key := 0, false
		for {
			token, err := d.Token()
			if err != nil {
				break
			}
			switch token {
			case json.Delim('{'), json.Delim('['):
				depth++
				key = token == json.Delim('{')
				continue
			case json.Delim('}'), json.Delim(']'):
				depth--
				key = true
				continue
			}
			if name, ok := token.(string); ok && key && depth == 1 {
				names = append(names, name)
			}
			key = !key
		}
		slices.Sort(names)
		if once := slices.Compact(slices.Clone(names)); len(once) != len(names) {
			t.Errorf("a key twice in %s", line)
		}
		if slices.Contains(names, "err") {
			t.Errorf("an error under another key in %s", line)
		}
		var r struct {
			Msg, Service, Node string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Msg == "" || strings.ToLower(r.Msg[:1]) != r.Msg[:1] || r.Service == "" || r.Node == "" {
			t.Errorf("message, service or node of %s", line)
		}
		per[r.Msg]++
	}
	for msg, n := range per {
		if n >= 20 {
			t.Errorf("%d times in %d epochs: %s", n, 20, msg)
		}
	}
}

// The process says that it is not ready, and why, when what it runs has failed for good.
func TestReadinessFollowsTheWork(t *testing.T) {
	t.Parallel()
	p := start(t)
	ready := p.until("/readyz", "ready", func(status int, _ string) bool { return status == http.StatusOK })
	for _, want := range []string{
		"[+] coordinator leader", "[+] coordinator bus", "[+] sink lease", "[+] sink heads", "[+] sink subtasks", "[+] sink bus",
		"[+] cdc-postgres lease",
	} {
		if !strings.Contains(ready, want+"\n") {
			t.Errorf("/readyz lacks %q:\n%s", want, ready)
		}
	}
	file := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.submit(`
apiVersion: weir/v1
job: shop
sources:
  gen: {type: generator, rate: 100}
sinks:
  lake: {from: [gen], type: files, files: {path: "` + filepath.Join(file, "lake") + `"}}
`)
	p.until("/readyz", "the failed subtask", func(status int, body string) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(body, "[-] sink subtasks: job shop: subtask lake")
	})
	if _, err := p.mesh.Cancel(p.ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	p.until("/readyz", "ready again", func(status int, _ string) bool { return status == http.StatusOK })
}
