package big

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// job is the name of every job here.
const job = "big"

// large reports whether the sizes of docs/bench/memory.md are wanted.
func large() bool { return os.Getenv("ITEST_BIG") != "" }

// scene is the product as processes, between two servers.
type scene struct {
	source, target *harness.Postgres
	*mesh.Mesh
}

// setting runs the servers and the processes of the mesh.
func setting(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		source: harness.StartPostgres(t, harness.PostgresConfig{}),
		target: harness.StartPostgres(t, harness.PostgresConfig{}),
	}
	s.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + s.source.URL("postgres"), "TARGET_URL=" + s.target.URL("postgres")},
	})
	return s
}

func (s *scene) exec(t *testing.T, pg *harness.Postgres, sql string, args ...any) {
	t.Helper()
	if err := pg.Exec(t.Context(), "postgres", sql, args...); err != nil {
		t.Fatalf("%v\n%.400s", err, sql)
	}
}

func ask[T any](t *testing.T, pg *harness.Postgres, sql string, args ...any) T {
	t.Helper()
	v, err := harness.Value[T](t.Context(), pg, "postgres", sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// watched is the resident memory of a process while a test runs.
type watched struct {
	stop  context.CancelFunc
	done  sync.WaitGroup
	sizes []float64
}

// watch looks at a process's memory until [watched.end].
func watch(t *testing.T, pid int) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watched{stop: cancel}
	w.done.Go(func() {
		for harness.Pause(ctx, 20*time.Millisecond) == nil {
			if mib, err := residentMiB(pid); err == nil {
				w.sizes = append(w.sizes, mib)
			}
		}
	})
	return w
}

// end returns the median and the peak.
func (w *watched) end(t *testing.T) (median, peak float64) {
	t.Helper()
	w.stop()
	w.done.Wait()
	if len(w.sizes) == 0 {
		t.Fatal("no process was watched")
	}
	slices.Sort(w.sizes)
	return w.sizes[len(w.sizes)/2], w.sizes[len(w.sizes)-1]
}

// residentMiB is a process's resident memory, see proc(5).
func residentMiB(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(status, []byte("VmRSS:"))
	if !ok {
		return 0, fmt.Errorf("process %d has no memory any more", pid)
	}
	kib, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
	return kib / 1024, err
}
