package iceberg

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// shaky is an object store in this process, with a network that fails.
type shaky struct {
	url string
	// failing is how many of a hundred requests fail: before they are done, or after, so that the reply is lost.
	failing atomic.Int64
	failed  atomic.Int64

	mu  sync.Mutex
	rng *rand.Rand
}

func startObjects(t *testing.T, bucket string) *shaky {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	o := &shaky{rng: rand.New(rand.NewPCG(1, 2))}
	inner := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch o.fault() {
		case "refuse":
			http.Error(w, "slow down", http.StatusServiceUnavailable)
		case "lose":
			inner.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

func (o *shaky) fault() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.rng.Int64N(100)
	if n >= o.failing.Load() {
		return ""
	}
	o.failed.Add(1)
	if n%2 == 0 {
		return "refuse"
	}
	return "lose"
}

func (o *shaky) spec(t *testing.T, mode spec.Mode) spec.Sink {
	t.Helper()
	return specOf("s3://lake/"+strings.ToLower(filepath.Base(t.TempDir())), mode, func(i *spec.IcebergSink) {
		i.Catalog = config.NewSecret(sqliteScheme + filepath.Join(tempDir(t), "catalog.db"))
		i.S3 = spec.IcebergS3{
			Endpoint: config.NewText(o.url), Region: "eu-1", AccessKey: config.NewSecret("access"), SecretKey: config.NewSecret("secret"),
		}
	})
}

// An object store that answers one request in ten with an error, or does what it is asked and loses the reply, delays epochs and
// changes none.
func TestFailingObjects(t *testing.T) {
	t.Parallel()
	o := startObjects(t, "lake")
	s := newScene(t, o.spec(t, spec.Upsert))
	goods := schemaOf(t, 1, text("name", 2))
	s.epoch(t, s.batch(t, goods, image{rows.OpInsert, 0, "0"}))
	s.quiet = true
	s.restart = func() { // what is tested is the work, not the start
		failing := o.failing.Swap(0)
		s.start(t)
		o.failing.Store(failing)
	}
	const epochs = 15
	for i := int64(1); i < epochs; i++ {
		o.failing.Store(10)
		s.retry(t, s.batch(t, goods, image{rows.OpUpdateAfter, i % 5, fmt.Sprint(i)}, image{rows.OpInsert, 100 + i, "new"}))
	}
	o.failing.Store(0)
	if o.failed.Load() < 8 {
		t.Fatalf("only %d requests failed", o.failed.Load())
	}
	now := s.rows(t, current, "shop.goods")
	if len(now) != 5+epochs-1 {
		t.Errorf("%d rows, want %d", len(now), 5+epochs-1)
	}
	for _, r := range now {
		if id := r.Cells["id"]; len(id) == 1 && r.Cells["name"] != "1"+id {
			t.Errorf("row %s is %s", id, r.Cells["name"])
		}
	}
}
