package iceberg

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/spec"
)

// restServer is a REST catalog in this process, made from the specification: it checks every requirement, numbers columns anew, and
// keeps the metadata itself. Its tables are where the sink asks for them.
type restServer struct {
	url string
	// endpoints are announced, when there are any.
	endpoints []string
	// fault decides what becomes of a commit: "" that it is done, else one of the faults below.
	fault func(commit string) mishap
	// before is called at every commit, before it is looked at. Optional.
	before func(commit string)
	// secret makes the server want tokens, each good for uses requests.
	secret string
	uses   int

	mu     sync.Mutex
	spaces map[string]bool
	tables map[string]*served
	tokens map[string]int
	asked  map[string]int // requests by method and path
}

type served struct {
	meta table.Metadata
	at   string
	n    int
}

// mishap is what becomes of a commit that is not just done.
type mishap string

const (
	conflicts mishap = "another commit was first"
	refusesIt mishap = "500 instead of the commit"
	losesIt   mishap = "500 after the commit"
	gateway   mishap = "504 after the commit"
	cutsIt    mishap = "the connection breaks after the commit"
	repeats   mishap = "409 after the commit, which was sent twice on the way"
)

func startREST(t *testing.T) *restServer {
	t.Helper()
	s := &restServer{spaces: make(map[string]bool), tables: make(map[string]*served), tokens: make(map[string]int), asked: make(map[string]int)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/config", s.config)
	mux.HandleFunc("POST /v1/oauth/tokens", s.token)
	mux.HandleFunc("GET /v1/lakes/main/namespaces/{ns}", s.space)
	mux.HandleFunc("POST /v1/lakes/main/namespaces", s.makeSpace)
	mux.HandleFunc("POST /v1/lakes/main/namespaces/{ns}/tables", s.makeTable)
	mux.HandleFunc("GET /v1/lakes/main/namespaces/{ns}/tables/{table}", s.load)
	mux.HandleFunc("POST /v1/lakes/main/namespaces/{ns}/tables/{table}", s.commitOne)
	mux.HandleFunc("POST /v1/lakes/main/transactions/commit", s.commitAll)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.Method+" "+r.URL.Path]++
		allowed := s.secret == "" || r.URL.Path == "/v1/oauth/tokens" || s.spend(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		s.mu.Unlock()
		if !allowed {
			refuse(w, http.StatusUnauthorized, "NotAuthorizedException", "the token has run out")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// spec is a sink that commits to the server.
func (s *restServer) spec(tb testing.TB, how spec.RESTCommit, more func(*spec.IcebergSink)) spec.Sink {
	tb.Helper()
	return specOf(tempDir(tb), spec.Upsert, func(i *spec.IcebergSink) {
		i.Catalog, i.REST = config.NewSecret(s.url), spec.IcebergREST{Commit: how}
		if more != nil {
			more(i)
		}
	})
}

func refuse(w http.ResponseWriter, status int, kind, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "type": kind, "code": status}})
}

func answer(w http.ResponseWriter, x any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(x)
}

func (s *restServer) spend(token string) bool {
	if s.tokens[token] == 0 {
		return false
	}
	s.tokens[token]--
	return true
}

func (s *restServer) token(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.FormValue("grant_type") != "client_credentials" || r.FormValue("client_id") != "weir" || r.FormValue("client_secret") != s.secret {
		w.WriteHeader(http.StatusUnauthorized)
		answer(w, map[string]string{"error": "invalid_client", "error_description": "unknown client"})
		return
	}
	token := uuid.New().String()
	s.tokens[token] = s.uses
	answer(w, map[string]any{"access_token": token, "token_type": "bearer", "expires_in": 3600})
}

func (s *restServer) config(w http.ResponseWriter, r *http.Request) {
	if at := r.FormValue("warehouse"); at != "" && at != "main" {
		refuse(w, http.StatusBadRequest, "BadRequestException", "there is no warehouse "+at)
		return
	}
	out := map[string]any{"defaults": map[string]string{"prefix": "none"}, "overrides": map[string]string{"prefix": "lakes/main"}}
	if len(s.endpoints) > 0 {
		out["endpoints"] = s.endpoints
	}
	answer(w, out)
}

func (s *restServer) space(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.spaces[r.PathValue("ns")] {
		refuse(w, http.StatusNotFound, "NoSuchNamespaceException", "no such namespace")
		return
	}
	answer(w, map[string]any{"namespace": []string{r.PathValue("ns")}})
}

func (s *restServer) makeSpace(w http.ResponseWriter, r *http.Request) {
	var in struct{ Namespace []string }
	if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Namespace) != 1 {
		refuse(w, http.StatusBadRequest, "BadRequestException", "one level, please")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces[in.Namespace[0]] {
		refuse(w, http.StatusConflict, "AlreadyExistsException", "the namespace is there")
		return
	}
	s.spaces[in.Namespace[0]] = true
	answer(w, in)
}

func (s *restServer) makeTable(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name, Location string
		Schema         *iceberg.Schema
		Spec           *iceberg.UnboundPartitionSpec `json:"partition-spec"`
		Properties     iceberg.Properties
		Staged         bool `json:"stage-create"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Staged {
		refuse(w, http.StatusBadRequest, "BadRequestException", fmt.Sprint("not a table: ", err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := r.PathValue("ns") + "." + in.Name
	if !s.spaces[r.PathValue("ns")] {
		refuse(w, http.StatusNotFound, "NoSuchNamespaceException", "no such namespace")
		return
	}
	if s.tables[name] != nil {
		refuse(w, http.StatusConflict, "AlreadyExistsException", "the table is there")
		return
	}
	meta, err := table.NewMetadata(in.Schema, &in.Spec.PartitionSpec, table.UnsortedSortOrder, in.Location, in.Properties)
	if err != nil {
		refuse(w, http.StatusBadRequest, "BadRequestException", err.Error())
		return
	}
	s.tables[name] = (&served{}).next(meta)
	s.show(w, r, s.tables[name])
}

func (t *served) next(meta table.Metadata) *served {
	return &served{meta: meta, n: t.n + 1, at: fmt.Sprintf("%s/metadata/%05d-%s.metadata.json", meta.Location(), t.n, uuid.New())}
}

func (s *restServer) load(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[r.PathValue("ns")+"."+r.PathValue("table")]
	if t == nil {
		refuse(w, http.StatusNotFound, "NoSuchTableException", "no such table")
		return
	}
	s.show(w, r, t)
}

// show answers with a table; of its snapshots with those that the request wants.
func (s *restServer) show(w http.ResponseWriter, r *http.Request, t *served) {
	data, err := json.Marshal(t.meta)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "InternalServerError", err.Error())
		return
	}
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(data, &meta); err != nil {
		panic(err)
	}
	if r.FormValue("snapshots") == "refs" {
		var kept []table.Snapshot
		for _, ref := range t.meta.Refs() {
			kept = append(kept, *t.meta.SnapshotByID(ref.SnapshotID))
		}
		if meta["snapshots"], err = json.Marshal(kept); err != nil {
			panic(err)
		}
	}
	answer(w, map[string]any{"metadata-location": t.at, "metadata": meta, "config": map[string]string{}})
}

func (s *restServer) commitOne(w http.ResponseWriter, r *http.Request) {
	var in tableChange
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequestException", err.Error())
		return
	}
	in.Identifier = identifier{[]string{r.PathValue("ns")}, r.PathValue("table")}
	s.commit(w, r.PathValue("table"), []tableChange{in}, func(w http.ResponseWriter) { s.show(w, r, s.tables[in.name()]) })
}

func (s *restServer) commitAll(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Changes []tableChange `json:"table-changes"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequestException", err.Error())
		return
	}
	s.commit(w, "", in.Changes, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) })
}

func (c tableChange) name() string { return c.Identifier.Namespace[0] + "." + c.Identifier.Name }

// commit makes changes to all their tables, or to none. what is the table; empty when there are several.
func (s *restServer) commit(w http.ResponseWriter, what string, all []tableChange, done func(http.ResponseWriter)) {
	if s.before != nil {
		s.before(what)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var f mishap
	if s.fault != nil {
		f = s.fault(what)
	}
	switch f {
	case conflicts:
		refuse(w, http.StatusConflict, "CommitFailedException", string(f))
		return
	case refusesIt:
		refuse(w, http.StatusInternalServerError, "CommitStateUnknownException", string(f))
		return
	case losesIt, gateway, cutsIt, repeats: // behind the change
	}
	next := make(map[string]*served)
	for _, c := range all {
		t := s.tables[c.name()]
		if t == nil {
			refuse(w, http.StatusNotFound, "NoSuchTableException", c.name())
			return
		}
		for _, q := range c.Requirements {
			if err := q.Validate(t.meta); err != nil {
				refuse(w, http.StatusConflict, "CommitFailedException", c.name()+": "+err.Error())
				return
			}
		}
		meta, err := table.UpdateTableMetadata(t.meta, c.Updates, t.at)
		if err != nil {
			refuse(w, http.StatusBadRequest, "BadRequestException", c.name()+": "+err.Error())
			return
		}
		next[c.name()] = t.next(meta)
	}
	maps.Copy(s.tables, next)
	switch f {
	case losesIt:
		refuse(w, http.StatusInternalServerError, "CommitStateUnknownException", string(f))
	case gateway:
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = io.Copy(w, bytes.NewReader([]byte("<html>upstream</html>")))
	case repeats:
		refuse(w, http.StatusConflict, "CommitFailedException", string(f))
	case cutsIt:
		panic(http.ErrAbortHandler)
	default:
		done(w)
	}
}

// wantNoMetadata fails when the sink has written what is the server's to write.
func wantNoMetadata(t *testing.T, s spec.Sink) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.Config.(*spec.IcebergSink).Warehouse.String(), "*", "*", "metadata", "*.metadata.json"))
	if err != nil || len(found) > 0 {
		t.Errorf("the sink wrote %q, %v", found, err)
	}
}
