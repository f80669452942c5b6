package ha

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/process"
)

// idleJobs lie on one process of each role, while nothing happens at their source; ITEST_IDLE_JOBS is for other
// numbers.
const idleJobs = 100

// slots is how many subtasks a process takes here: each job has two of either role, and all of them lie on one process of each.
const slots = 1024

// rest is how long the jobs are left alone before they are measured: by then their epochs have become as rare as they get.
const rest = 330 * time.Second

const idleSpec = `apiVersion: weir/v1
job: %s
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["public.calm"]
    snapshot: {mode: never}
sinks:
  hole: {from: [db], type: blackhole, mode: changelog}
`

// BenchmarkIdle measures what jobs cost that have nothing to do, with the settings that a job has by default: the processor
// time of coordinator, nodes and NATS together, and how often NATS syncs a file. With ITEST_PROFILE=DIR each service's
// profile of the time is written there.
func BenchmarkIdle(b *testing.B) {
	n := harness.Number(b, "ITEST_IDLE_JOBS", idleJobs)
	room := fmt.Sprint(2*n + 20)
	source := harness.StartPostgres(b, harness.PostgresConfig{Settings: map[string]string{
		"max_replication_slots": room, "max_wal_senders": room, "max_connections": fmt.Sprint(8*n + 50),
	}})
	if err := source.Exec(b.Context(), "postgres", "CREATE TABLE calm (id int PRIMARY KEY)"); err != nil {
		b.Fatal(err)
	}
	m := mesh.Start(b, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + source.URL("postgres"), fmt.Sprintf("WEIR_CDC_POSTGRES_SLOTS=%d", slots), fmt.Sprintf("WEIR_SINK_SLOTS=%d", slots)},
	})
	records := m.Records(b)
	submitAll(b, m, n)
	harness.Await(b, 5*time.Minute, "all jobs to be idle", func(ctx context.Context) error {
		heads, err := records.Heads(ctx)
		if err != nil {
			return err
		}
		for name, v := range heads {
			if v.Head.Phase != job.Running || v.Head.Committed == 0 {
				return fmt.Errorf("job %s is %s: %s", name, v.Head.Phase, v.Head.Reason.Text)
			}
		}
		if len(heads) < n {
			return fmt.Errorf("%d jobs", len(heads))
		}
		return nil
	})
	for b.Loop() {
		measureIdle(b, m, records)
	}
}

// submitAll submits the jobs, a few at a time.
func submitAll(b *testing.B, m *mesh.Mesh, n int) {
	b.Helper()
	files := make(chan string, n)
	for i := range n {
		name := fmt.Sprintf("calm-%d", i)
		files <- m.File(b, name+".yaml", fmt.Sprintf(idleSpec, name))
	}
	close(files)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for file := range files {
				if a, err := m.Weir(b.Context(), "job", "submit", file); err != nil || a.Exit != 0 {
					b.Errorf("%v: %s", err, a)
				}
			}
		})
	}
	all.Wait()
}

func measureIdle(b *testing.B, m *mesh.Mesh, records *mesh.Records) {
	b.Helper()
	const span = 300 * time.Second // a whole interval between two epochs of each
	if err := harness.Pause(b.Context(), rest); err != nil {
		b.Fatal(err)
	}
	processes := map[string]*harness.Process{"nats": m.NATS.Process}
	for _, member := range m.Members {
		processes[member.Node] = member.Process
	}
	usage := func() map[string]process.Usage {
		all := make(map[string]process.Usage)
		for name, p := range processes {
			u, err := p.Usage()
			if err != nil {
				b.Fatal(err)
			}
			all[name] = u
		}
		return all
	}
	stored, jobs, epochs := written(b, m.NATS), 0, committedEpochs(b, records)
	before, began := usage(), time.Now()
	profiled := profile(b, m, span)
	if err := harness.Pause(b.Context(), span); err != nil {
		b.Fatal(err)
	}
	after, took := usage(), time.Since(began).Seconds()
	profiled()
	var all time.Duration
	for name := range processes {
		cpu := after[name].CPU - before[name].CPU
		all += cpu
		b.Logf("%-15s %5.1f %% of a core, %6.0f writes/s", name, 100*cpu.Seconds()/took,
			float64(after[name].Writes-before[name].Writes)/took)
	}
	syncs := float64(written(b, m.NATS)-stored) / took
	passed := 0
	for name, at := range committedEpochs(b, records) {
		jobs, passed = jobs+1, passed+int(at-epochs[name])
	}
	b.Logf("%d idle jobs: %.1f %% of a core, %.1f messages/s into file streams, each synced; %d epochs in %.0f s",
		jobs, 100*all.Seconds()/took, syncs, passed, took)
	b.ReportMetric(100*all.Seconds()/took, "%core")
	b.ReportMetric(syncs, "syncs/s")
}

// committedEpochs are the epochs that the jobs have committed.
func committedEpochs(b *testing.B, records *mesh.Records) map[string]epoch.ID {
	b.Helper()
	heads, err := records.Heads(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	all := make(map[string]epoch.ID, len(heads))
	for name, v := range heads {
		all[name] = v.Head.Committed
	}
	return all
}

// written is how many messages the file streams of a server have ever taken; with sync_interval always each is an fsync.
func written(b *testing.B, s *harness.NATS) (messages uint64) {
	b.Helper()
	var all struct {
		Accounts []struct {
			Streams []struct {
				Config struct{ Storage string }
				State  struct {
					Last uint64 `json:"last_seq"`
				}
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	state, err := harness.Get(b.Context(), s.Monitor+"/jsz?streams=true&accounts=true&config=true")
	if err == nil {
		err = json.Unmarshal(state, &all)
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, account := range all.Accounts {
		for _, stream := range account.Streams {
			if stream.Config.Storage == "file" {
				messages += stream.State.Last
			}
		}
	}
	return messages
}

// profile takes each service's profile over the span when ITEST_PROFILE names a folder; the returned function waits.
func profile(b *testing.B, m *mesh.Mesh, span time.Duration) (wait func()) {
	b.Helper()
	dir := os.Getenv("ITEST_PROFILE")
	if dir == "" {
		return func() {}
	}
	done := make(chan struct{})
	for _, member := range m.Members {
		go func() {
			defer func() { done <- struct{}{} }()
			text, err := harness.Get(b.Context(), fmt.Sprintf("%s/debug/pprof/profile?seconds=%.0f", member.HTTP, span.Seconds()))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, member.Node+".pprof"), text, 0o600)
			}
			if err != nil {
				b.Error(err)
			}
		}()
	}
	return func() {
		for range m.Members {
			<-done
		}
	}
}
