package schedules

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/node"
	"weir.dev/weir/pkg/verdict"
)

// schedule is one drawn history of faults. Everything that is drawn depends on class and seed only.
type schedule struct {
	*mesh
	r    *rand.Rand
	seed int
	// faults are those between nodes and the bus; nil when the class has none.
	faults *meshtest.Faults
	// timeout is the spec's epoch timeout, rows how many there are; 0 is no end.
	timeout time.Duration
	rows    int
	// readers is the number of readers and of nodes with sources; 0 draws one or two of each.
	readers int
}

// class is a kind of fault with the number of seeds it takes in one run.
type class struct {
	name  string
	seeds int
	// rows bounds the source, for classes in which hours pass. Optional.
	rows int
	// readers and the nodes with sources; 0 draws one or two. Optional.
	readers int
	// plan draws faults between nodes and bus. Optional.
	plan func(s *schedule) meshtest.FaultPlan
	// do makes faults happen while the job runs, and leaves every process running.
	do func(s *schedule)
	// ends says that do ends the job and has judged it.
	ends bool
	// after asserts what the class is about once the job has finished. Optional.
	after func(s *schedule)
}

// TestSchedules runs every class with its seeds. BUBBLE_SEEDS=n runs n seeds of each class instead, fewer or more;
// BUBBLE_SEED=<class>/<seed> replays one schedule, BUBBLE_LOG=1 shows what the processes log.
func TestSchedules(t *testing.T) {
	each := 0
	if v := os.Getenv("BUBBLE_SEEDS"); v != "" {
		var err error
		if each, err = strconv.Atoi(v); err != nil || each < 1 {
			t.Fatalf("BUBBLE_SEEDS=%s is no positive number", v)
		}
	}
	if only := os.Getenv("BUBBLE_SEED"); only != "" {
		name, number, _ := strings.Cut(only, "/")
		i := slices.IndexFunc(classes, func(c class) bool { return c.name == name })
		seed, err := strconv.Atoi(number)
		if i < 0 || err != nil {
			t.Fatalf("BUBBLE_SEED=%s names no schedule", only)
		}
		run(t, classes[i], seed)
		return
	}
	total := 0
	for _, c := range classes {
		seeds := c.seeds
		if each > 0 {
			seeds = each
		}
		for seed := range seeds {
			total++
			t.Run(fmt.Sprintf("%s/%d", c.name, seed), func(t *testing.T) {
				t.Parallel()
				run(t, c, seed)
			})
		}
	}
	if each == 0 && total < 200 {
		t.Errorf("%d schedules, want 200 at least", total)
	}
}

// run plays one schedule: a mesh under load, faults, calm, drain, verdict.
func run(t *testing.T, c class, seed int) {
	t.Helper()
	h := fnv.New64a()
	h.Write([]byte(c.name))
	r := rand.New(rand.NewPCG(uint64(seed), h.Sum64()))
	defer func() {
		if t.Failed() {
			t.Logf("replay: BUBBLE_SEED=%s/%d go test -run TestSchedules", c.name, seed)
		}
	}()
	inBubble(t, func(m *mesh) {
		s := &schedule{mesh: m, r: r, seed: seed, timeout: 2 * time.Second, rows: c.rows, readers: c.readers}
		if c.plan != nil {
			s.faults = meshtest.NewFaults(c.plan(s))
			s.between = func(m node.Mesh) node.Mesh {
				m.Bus, m.Facts = s.faults.Bus(m.Bus), s.faults.Facts(m.Facts)
				return m
			}
		}
		s.begin()
		stop := s.observe()
		s.progress(2)
		c.do(s)
		s.calm()
		if !c.ends {
			if s.rows == 0 { // a bounded source may have come to its end, and the job with it
				s.progress(2)
			}
			s.drain()
		}
		stop()
		if c.after != nil {
			c.after(s)
		}
		if len(s.fired) == 0 {
			t.Error("no fault happened: the test proves nothing")
		}
		t.Logf("%d changes in %d commits; faults %v", len(m.target.Changes()), len(m.target.Log()), s.fired)
	})
}

// begin starts a mesh of a drawn shape and a job.
func (s *schedule) begin() {
	s.t.Helper()
	for i := range 2 {
		s.start(fmt.Sprint("c", i+1))
		pass(s.some(3, 60))
	}
	s.open()
	sources, readers := 1+s.r.IntN(2), 1+s.r.IntN(2)
	if s.readers > 0 {
		sources, readers = s.readers, s.readers
	}
	for i := range sources {
		s.start(fmt.Sprint("s", i+1))
	}
	for i := range 1 + s.r.IntN(2) {
		s.start(fmt.Sprint("k", i+1))
	}
	pass(s.some(3, 60))
	s.submit(fmt.Sprintf(`
apiVersion: weir/v1
job: shop
epoch: {interval: %dms, timeout: %s, idle_interval: 1s, max_bytes: 1MiB}
restart: {backoff: 50ms, cap: 1000}
sources:
  gen: {type: generator, rate: %d, tables: %d, columns: 2, keys: %d, deletes: %d, transaction_rows: %d, readers: %d, seed: %d, rows: %d}
sinks:
  out: {from: [gen], type: blackhole, mode: changelog, writers: %d}
`, 90+s.r.IntN(200), s.timeout, 50+s.r.IntN(100), 1+s.r.IntN(3), 10+s.r.IntN(60), s.r.IntN(30), 1+s.r.IntN(5),
		readers, s.seed, s.rows, 1+s.r.IntN(2)))
}

// calm ends every fault.
func (s *schedule) calm() {
	s.target.WatchCommits(nil)
	s.target.SetDown(false)
	s.target.SetSlow(0)
	if s.faults != nil {
		s.faults.Stop()
		s.faults.Wait()
		s.mu.Lock()
		maps.Copy(s.fired, s.faults.Fired())
		s.mu.Unlock()
	}
	for _, p := range s.procs {
		p.link.Disarm()
		p.link.Release()
	}
}

// some draws a time between two numbers of milliseconds.
func (s *schedule) some(low, high int) time.Duration {
	return time.Duration(low)*time.Millisecond + time.Duration(s.r.Int64N(int64(high-low)*int64(time.Millisecond)))
}

// one draws a process of a kind.
func (s *schedule) one(kinds string) *proc {
	var all []*proc
	for k := range strings.SplitSeq(kinds, "") {
		all = append(all, s.processes(k)...)
	}
	return all[s.r.IntN(len(all))]
}

// restart starts the next incarnation of a process that has crashed.
func (s *schedule) restart(p *proc) { s.start(p.name) }

// attempt is the head as it is now.
func (s *schedule) attempt() *job.Head {
	return s.await("head", func(*job.Head) bool { return true })
}

// onceEach holds when no epoch was committed twice and epochs only grow.
func onceEach(log []verdict.Applied) error {
	var last epoch.ID
	for _, a := range log {
		if a.Ref.Epoch <= last {
			return fmt.Errorf("epoch %s was committed after epoch %s", a.Ref.Epoch, last)
		}
		last = a.Ref.Epoch
	}
	return nil
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 29)) }
