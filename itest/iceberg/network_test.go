package iceberg

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// fault is what a network or a server does to a request.
type fault string

const (
	refused fault = "refused" // 503 or 500, and nothing is done
	lost    fault = "lost"    // done, and the connection ends without an answer
	torn    fault = "torn"    // done, and the connection ends amid the answer
	// Those two take as long as the client's patience, and count when that has ended.
	late    fault = "late"    // done, and answered when nobody listens any more
	stalled fault = "stalled" // neither done nor answered
)

// patience is less than how long the sink waits for an answer, and more than how long a process lives that is about to be killed.
const patience = 8 * time.Second

// network lies between the sink and its object store, and harms requests. Signatures cover the host that the client named: it is left as
// it is.
type network struct {
	url string

	proxy *httputil.ReverseProxy

	mu      sync.Mutex
	rng     *rand.Rand
	percent int
	tearing bool
	asked   map[string]bool // questions whose answers have been torn since they last came whole
	ordered []fault
	met     map[string]bool // paths that have met an ordered fault
	done    map[fault]int
	cut     chan struct{} // closed when the test ends
}

func startNetwork(t *testing.T, store string, seed uint64) *network {
	t.Helper()
	target, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	n := &network{rng: rand.New(rand.NewPCG(seed, 1)), met: make(map[string]bool), asked: make(map[string]bool), done: make(map[fault]int), cut: make(chan struct{})}
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // of connections that break
	n.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
		ErrorLog: quiet,
	}
	server := httptest.NewUnstartedServer(n)
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(func() {
		close(n.cut)
		server.Close()
	})
	n.url = server.URL
	return n
}

// harm lets a share of all requests meet one of the faults that take no time.
func (n *network) harm(percent int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.percent, n.tearing = percent, false
}

// tear lets every other answer to the same question be torn, and nothing else happen. What asks for the rest of a torn answer gets it.
func (n *network) tear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.percent, n.tearing = 0, true
}

// order has the next requests that write meet a fault each, each for another object, so that they can be waited for at once.
func (n *network) order(f ...fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ordered = append(n.ordered, f...)
}

// faults is how often each has come to pass.
func (n *network) faults() map[fault]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.done)
}

func (n *network) draw(r *http.Request) fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Method == http.MethodPut && len(n.ordered) > 0 && !n.met[r.URL.Path] {
		f := n.ordered[0]
		n.ordered, n.met[r.URL.Path] = n.ordered[1:], true
		return f
	}
	if n.tearing && r.Method == http.MethodGet && r.Header.Get("If-Match") == "" {
		question := r.URL.String() + " " + r.Header.Get("Range")
		if n.asked[question] = !n.asked[question]; n.asked[question] {
			return torn
		}
	}
	if n.rng.IntN(100) >= n.percent {
		return ""
	}
	quick := []fault{refused, lost}
	if r.Method == http.MethodGet {
		quick = append(quick, torn, torn)
	}
	return quick[n.rng.IntN(len(quick))]
}

func (n *network) count(f fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.done[f]++
}

// ServeHTTP implements [http.Handler].
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch f := n.draw(r); f {
	case refused:
		n.count(f)
		status := []int{http.StatusServiceUnavailable, http.StatusInternalServerError}[n.faults()[f]%2]
		http.Error(w, "", status)
	case lost:
		n.proxy.ServeHTTP(httptest.NewRecorder(), r)
		n.count(f)
		panic(http.ErrAbortHandler)
	case torn:
		answer := httptest.NewRecorder()
		n.proxy.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2]) // the rest does not matter to whom half does not reach
		if err := http.NewResponseController(w).Flush(); err == nil && answer.Body.Len() > 0 {
			n.count(f)
		}
		panic(http.ErrAbortHandler)
	case late:
		n.proxy.ServeHTTP(httptest.NewRecorder(), r)
		n.outwait(f, r)
	case stalled:
		// The end of a connection is seen only when the request has been read.
		if _, err := io.Copy(io.Discard, r.Body); err != nil && !errors.Is(err, http.ErrBodyReadAfterClose) {
			panic(http.ErrAbortHandler)
		}
		n.outwait(f, r)
	default:
		n.proxy.ServeHTTP(w, r)
	}
}

// outwait answers nothing until the client has given up. One that was ended meanwhile has not: the fault is ordered again.
func (n *network) outwait(f fault, r *http.Request) {
	since := time.Now()
	select {
	case <-r.Context().Done():
		if time.Since(since) > patience {
			n.count(f)
		} else {
			n.order(f)
		}
	case <-n.cut:
	}
	panic(http.ErrAbortHandler)
}

// missing are the faults of these that have not yet come to pass so often.
func (n *network) missing(times int, of ...fault) []fault {
	done := n.faults()
	return slices.DeleteFunc(slices.Clone(of), func(f fault) bool { return done[f] >= times })
}
