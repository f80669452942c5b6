package objects

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	iceio "github.com/apache/iceberg-go/io"
)

const object = "s3://lake/object"

// hasty waits long enough for any answer of this process, and no longer.
var hasty = rereader{silence: 500 * time.Millisecond, pause: time.Millisecond}

// server is an object store with one object, and harms its answers as it is told.
type server struct {
	data []byte
	// harms are done to the answers of these numbers.
	harms map[int]harm
	// headers are those of the answers in turn; all after the last have the last one's.
	headers []http.Header
	// deaf has ranges ignored.
	deaf bool

	mu       sync.Mutex
	requests []*http.Request
}

// harm is what becomes of an answer.
type harm struct {
	// after is how many bytes of it come.
	after int
	// silent keeps the connection when they have; else it ends.
	silent bool
}

// start opens the warehouse that the server holds.
func (s *server) start(t *testing.T, ctx context.Context, log slog.Handler) iceio.WriteFileIO {
	t.Helper()
	web := httptest.NewUnstartedServer(s)
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	web.Start()
	t.Cleanup(web.Close)
	access := Access{Endpoint: web.URL, Region: "eu-1", AccessKey: "access", SecretKey: "secret"}
	r := hasty
	r.log = slog.New(log)
	files, err := open(ctx, "s3://lake", access, r)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r.Clone(context.WithoutCancel(r.Context())))
	s.mu.Unlock()
	if h, ok := s.harms[n]; ok {
		w = &harmed{ResponseWriter: w, harm: h, gone: r.Context().Done()}
	}
	w.Header().Set("Etag", `"one"`)
	if len(s.headers) > 0 {
		maps.Copy(w.Header(), s.headers[min(n, len(s.headers)-1)])
	}
	if s.deaf {
		r.Header.Del("Range")
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		answer(w, `<ListBucketResult><Contents><Key>object</Key><LastModified>2026-01-01T00:00:00Z</LastModified>
			<ETag>"one"</ETag><Size>1</Size></Contents></ListBucketResult>`)
	case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
		answer(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodGet && r.URL.Path == "/lake/object":
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.data))
	default:
		http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write([]byte(body)) // a client that does not get it says so
}

// asked are the ranges of the requests so far; a request without one has none.
func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.requests {
		out = append(out, strings.TrimPrefix(r.Header.Get("Range"), "bytes="))
	}
	return out
}

// harmed writes an answer that does not come whole.
type harmed struct {
	http.ResponseWriter
	harm harm
	gone <-chan struct{} // the client
}

// Write implements [io.Writer].
func (h *harmed) Write(p []byte) (int, error) {
	if len(p) <= h.harm.after {
		h.harm.after -= len(p)
		return h.ResponseWriter.Write(p)
	}
	if _, err := h.ResponseWriter.Write(p[:h.harm.after]); err == nil {
		err = http.NewResponseController(h.ResponseWriter).Flush()
		if err == nil && h.harm.silent {
			<-h.gone
		}
	}
	panic(http.ErrAbortHandler)
}

const size = 300_000

func content() []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
	return data
}
