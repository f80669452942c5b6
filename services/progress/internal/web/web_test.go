package web

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/services/progress/internal/view"
)

var update = flag.Bool("update", false, "rewrite schemas/openapi.json")

// serve is a mux that shows one job.
func serve(t *testing.T, token string, show ...view.View) *http.ServeMux {
	t.Helper()
	b := view.NewBoard(time.Minute)
	for _, v := range show {
		b.Show(v)
	}
	mux := http.NewServeMux()
	Serve(mux.Handle, Config{Board: b, Token: token, Version: "v1", Closing: t.Context().Done()})
	return mux
}

func shop() view.View {
	j := view.Job{Epochs: progress.EpochList{Job: "shop", Epochs: []progress.EpochLine{{Epoch: 9}, {Epoch: 8}, {Epoch: 7}}}}
	j.Job, j.Phase, j.Why = "shop", job.Running, []string{}
	return view.View{At: time.Now(), Jobs: []view.Job{j}}
}

func ask(t *testing.T, h http.Handler, method, path, token string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every refusal is a problem with our code; nothing about jobs is said without the token.
func TestRefusals(t *testing.T) {
	t.Parallel()
	mux := serve(t, "", shop())
	guarded := serve(t, "s3cret", shop())
	empty := serve(t, "")
	old := serve(t, "", view.View{At: time.Now().Add(-time.Hour)})
	for _, tc := range []struct {
		mux                 http.Handler
		method, path, token string
		status              int
		code                string
	}{
		{mux, "GET", "/v1/jobs/nothing", "", 404, "WEIR-CLI-007"},
		{mux, "GET", "/v1/jobs/nothing/events", "", 404, "WEIR-CLI-007"},
		{mux, "GET", "/v1/elsewhere", "", 404, "WEIR-API-002"},
		{mux, "GET", "/page/secrets.go", "", 404, "WEIR-API-002"},
		{mux, "POST", "/v1/jobs", "", 405, "WEIR-API-003"},
		{mux, "DELETE", "/v1/jobs/shop", "", 405, "WEIR-API-003"},
		{mux, "GET", "/v1/jobs/shop/epochs?limit=0", "", 400, "WEIR-API-006"},
		{mux, "GET", "/v1/jobs/shop/epochs?limit=many", "", 400, "WEIR-API-006"},
		{guarded, "GET", "/v1/jobs", "", 401, "WEIR-API-001"},
		{guarded, "GET", "/v1/jobs", "wrong", 401, "WEIR-API-001"},
		{guarded, "GET", "/v1/jobs/shop", "", 401, "WEIR-API-001"},
		{guarded, "GET", "/v1/jobs/shop/epochs", "", 401, "WEIR-API-001"},
		{guarded, "GET", "/v1/jobs/shop/graph", "", 401, "WEIR-API-001"},
		{guarded, "GET", "/v1/jobs/shop/events", "", 401, "WEIR-API-001"},
		{guarded, "GET", "/v1/events", "", 401, "WEIR-API-001"},
		{guarded, "GET", "/v1/jobs/nothing", "", 401, "WEIR-API-001"},
		{empty, "GET", "/v1/jobs", "", 503, "WEIR-API-005"},
		{empty, "GET", "/v1/events", "", 503, "WEIR-API-005"},
		{old, "GET", "/v1/jobs", "", 503, "WEIR-API-005"},
	} {
		w := ask(t, tc.mux, tc.method, tc.path, tc.token)
		var p Problem
		err := json.Unmarshal(w.Body.Bytes(), &p)
		if err != nil || w.Code != tc.status || p.Status != tc.status || p.Code != tc.code || p.Title == "" ||
			w.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("%s %s: %d %s %s", tc.method, tc.path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
	if w := ask(t, guarded, "GET", "/v1/jobs", "s3cret"); w.Code != 200 {
		t.Errorf("with the token: %d", w.Code)
	}
	if w := ask(t, guarded, "GET", "/v1/jobs", ""); w.Header().Get("WWW-Authenticate") == "" {
		t.Error("401 does not say how to authenticate")
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	mux := serve(t, "", shop())
	for path, want := range map[string]string{
		"/v1/jobs":                     `"jobs":[{"job":"shop","phase":"RUNNING"`,
		"/v1/jobs/shop":                `"job":"shop"`,
		"/v1/jobs/shop/epochs":         `"detailsTruncated":false`,
		"/v1/jobs/shop/epochs?limit=2": `{"epoch":8,"state":"","rows":0}],"detailsTruncated":true`,
		"/v1/jobs/shop/graph":          `{"vertices":[],"edges":[]}`,
		"/v1/openapi.json":             `"openapi":"3.1.0"`,
		"/":                            `<html lang="en">`,
		"/page/parts.js":               "textContent",
	} {
		w := ask(t, mux, "GET", path, "")
		if w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if strings.Contains(ask(t, mux, "GET", "/v1/jobs/shop", "").Body.String(), "cdcProgress") {
		t.Error("a job without a database has cdcProgress")
	}
}

// The page asks no other host for anything and its policy would not let it.
func TestThePageStandsAlone(t *testing.T) {
	t.Parallel()
	mux := serve(t, "", shop())
	for _, path := range []string{"/", "/page/page.js", "/page/parts.js", "/page/draw.js", "/page/page.css"} {
		w := ask(t, mux, "GET", path, "")
		text := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "")
		if strings.Contains(text, "://") || strings.Contains(text, "url(") {
			t.Errorf("%s names another host", path)
		}
		if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %q", path, p)
		}
	}
}

func TestTheInterfaceIsAsDescribed(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(OpenAPI("1"), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("..", "..", "..", "..", "schemas", "openapi.json")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(got) != string(want) {
		t.Errorf("schemas/openapi.json is not what is served: go test ./progress/internal/web -update (%v)", err)
	}
	for _, ref := range strings.Split(string(got), `"$ref": "#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(ref, `"`)
		if !strings.Contains(string(got), `"`+name+`": {`) {
			t.Errorf("schema %s is not there", name)
		}
	}
}
