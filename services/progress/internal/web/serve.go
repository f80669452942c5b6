package web

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/services/progress/internal/view"
)

// maxJobs bounds a list of jobs.
const maxJobs = 500

// Config is what is served, and to whom.
type Config struct {
	Board *view.Board
	// Token is what requests must carry; empty lets everybody read.
	Token string
	// Version is that of the build.
	Version string
	// Closing ends the streams of events.
	Closing <-chan struct{}
}

// JobList is the answer to /v1/jobs.
type JobList struct {
	ObservedAt time.Time `json:"observedAt"`
	Jobs       []Line    `json:"jobs"`
	// DetailsTruncated says that there are more jobs than are listed.
	DetailsTruncated bool `json:"detailsTruncated"`
}

// Line is one job in a list.
type Line struct {
	Job       string   `json:"job"`
	Phase     string   `json:"phase"`
	Fence     uint64   `json:"fence"`
	Durable   uint64   `json:"durable"`
	Committed uint64   `json:"committed"`
	Sources   []string `json:"sources"`
	Sinks     []string `json:"sinks"`
	// Lifecycles are those of the sources, in their order.
	Lifecycles []string `json:"lifecycles"`
	Why        []string `json:"why"`
}

// Picture is a job's flow for drawing.
type Picture struct {
	Vertices []Node `json:"vertices"`
	Edges    []Link `json:"edges"`
}

// Node is one stage.
type Node struct {
	ID          string `json:"id"`
	Role        string `json:"role"`
	Name        string `json:"name"`
	Parallelism int    `json:"parallelism"`
}

// Link leads from one stage to another.
type Link struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Problem is an error as RFC 9457 wants it, with the members of the error object beside.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Instance is the path that was asked for.
	Instance string `json:"instance,omitempty"`
	Code     string `json:"code"`
	Remedy   string `json:"remedy,omitempty"`
}

//go:embed page/*
var page embed.FS

type server struct {
	Config

	listeners chan struct{}
	digest    [sha256.Size]byte
}

// Serve adds the handlers.
func Serve(handle func(pattern string, h http.Handler), cfg Config) {
	s := &server{Config: cfg, listeners: make(chan struct{}, maxListeners), digest: sha256.Sum256([]byte(cfg.Token))}
	handle("GET /v1/jobs", s.guarded(s.jobs))
	handle("GET /v1/jobs/{job}", s.guarded(s.job))
	handle("GET /v1/jobs/{job}/epochs", s.guarded(s.epochs))
	handle("GET /v1/jobs/{job}/graph", s.guarded(s.graph))
	handle("GET /v1/jobs/{job}/events", s.guarded(s.events))
	handle("GET /v1/events", s.guarded(s.events))
	handle("GET /v1/openapi.json", http.HandlerFunc(s.openAPI))
	handle("/v1/", http.HandlerFunc(s.elsewhere))
	handle("GET /{$}", file("index.html"))
	handle("GET /page/{file}", http.HandlerFunc(s.file))
}

// guarded asks for the token.
func (s *server) guarded(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if s.Token != "" {
			given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			digest := sha256.Sum256([]byte(given))
			if !ok || subtle.ConstantTimeCompare(digest[:], s.digest[:]) != 1 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
				refuse(w, r, http.StatusUnauthorized, fault.New(fault.APIToken, r.URL.Path, ""))
				return
			}
		}
		next(w, r)
	})
}

// now is the view, or the refusal to show an old one.
func (s *server) now(w http.ResponseWriter, r *http.Request) (view.View, bool) {
	v, _, err := s.Board.Now()
	if err != nil {
		w.Header().Set("Retry-After", "1")
		refuse(w, r, http.StatusServiceUnavailable, fault.New(fault.APIBehind, r.URL.Path, err.Error()))
		return v, false
	}
	return v, true
}

// found is the job of the path.
func (s *server) found(w http.ResponseWriter, r *http.Request) (view.Job, bool) {
	v, ok := s.now(w, r)
	if !ok {
		return view.Job{}, false
	}
	name := r.PathValue("job")
	j, ok := v.Job(name)
	if !ok {
		refuse(w, r, http.StatusNotFound, fault.New(fault.CLINoJob, name, "the registry has no such job"))
	}
	return j, ok
}

func (s *server) jobs(w http.ResponseWriter, r *http.Request) {
	v, ok := s.now(w, r)
	if !ok {
		return
	}
	answer(w, listOf(&v))
}

func listOf(v *view.View) JobList {
	out := JobList{ObservedAt: v.At.UTC(), Jobs: []Line{}}
	for i := range v.Jobs {
		if i == maxJobs {
			out.DetailsTruncated = true
			break
		}
		j := &v.Jobs[i]
		l := Line{
			Job: j.Job, Phase: string(j.Phase), Fence: j.Fence, Durable: j.Epoch.Durable, Committed: j.Epoch.Committed,
			Sources: []string{}, Sinks: []string{}, Lifecycles: []string{}, Why: j.Why,
		}
		for _, src := range j.Sources {
			l.Sources, l.Lifecycles = append(l.Sources, src.Name), append(l.Lifecycles, string(src.Lifecycle))
		}
		for _, k := range j.Sinks {
			l.Sinks = append(l.Sinks, k.Name)
		}
		out.Jobs = append(out.Jobs, l)
	}
	return out
}

// maxTables bounds the tables of a source in an answer.
const maxTables = 1000

func (s *server) job(w http.ResponseWriter, r *http.Request) {
	if j, ok := s.found(w, r); ok {
		answer(w, bounded(j.Detail))
	}
}

// bounded cuts lists that grow with the database.
func bounded(d progress.Detail) progress.Detail {
	sources := make([]progress.Source, len(d.Sources))
	copy(sources, d.Sources)
	for i := range sources {
		src := &sources[i]
		if len(src.Tables) > maxTables {
			src.Tables, src.TablesTruncated = src.Tables[:maxTables], true
		}
		// The tables are there once, put together.
		if src.Enumerator != nil {
			e := *src.Enumerator
			e.Tables = nil
			src.Enumerator = &e
		}
		readers := make([]progress.Reader, len(src.Readers))
		copy(readers, src.Readers)
		for k := range readers {
			readers[k].Tables = nil
		}
		src.Readers = readers
	}
	d.Sources = sources
	return d
}

func (s *server) epochs(w http.ResponseWriter, r *http.Request) {
	j, ok := s.found(w, r)
	if !ok {
		return
	}
	out := j.Epochs
	if text := r.URL.Query().Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > progress.MaxEpochs {
			refuse(w, r, http.StatusBadRequest, fault.New(fault.APIQuery, "limit", fmt.Sprintf("want a number from 1 to %d", progress.MaxEpochs)))
			return
		}
		if n < len(out.Epochs) {
			out.Epochs, out.DetailsTruncated = out.Epochs[:n], true
		}
	}
	answer(w, out)
}

func (s *server) graph(w http.ResponseWriter, r *http.Request) {
	j, ok := s.found(w, r)
	if !ok {
		return
	}
	out := Picture{Vertices: []Node{}, Edges: []Link{}}
	if j.Plan != nil {
		for _, v := range j.Plan.Vertices {
			out.Vertices = append(out.Vertices, Node{ID: string(v.ID), Role: string(v.Role), Name: v.Name, Parallelism: v.Parallelism})
		}
		for _, e := range j.Plan.Edges {
			if !e.Feedback {
				out.Edges = append(out.Edges, Link{From: string(e.From), To: string(e.To)})
			}
		}
	}
	answer(w, out)
}

func (s *server) openAPI(w http.ResponseWriter, _ *http.Request) { answer(w, OpenAPI(s.Version)) }

func (s *server) elsewhere(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, r, http.StatusMethodNotAllowed, fault.New(fault.APIMethod, r.URL.Path, r.Method))
		return
	}
	refuse(w, r, http.StatusNotFound, fault.New(fault.APINotHere, r.URL.Path, ""))
}

// policy allows the page's own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *server) file(w http.ResponseWriter, r *http.Request) {
	file(r.PathValue("file")).ServeHTTP(w, r)
}

func file(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := page.ReadFile(path.Join("page", path.Base(name)))
		if err != nil {
			refuse(w, r, http.StatusNotFound, fault.New(fault.APINotHere, r.URL.Path, ""))
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(b))
	})
}

func answer(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("web: an answer cannot be encoded: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func refuse(w http.ResponseWriter, r *http.Request, status int, f *fault.Error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	p := Problem{
		Type: "urn:weir:error:" + string(f.Code), Title: f.What, Status: status, Detail: f.Why, Instance: r.URL.Path,
		Code: string(f.Code), Remedy: f.Remedy,
	}
	_ = json.NewEncoder(w).Encode(p) // whoever has gone needs no answer
}
