package bench

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/audit"
)

// product is one `weir up` with one job.
type product struct {
	*mesh.Mesh
	*mesh.Records

	s     *stand
	job   string
	began time.Time // just before the job was submitted
}

// followed is a source's part of a job that only follows the log, by a slot of its own or by the one that is given.
func followed(slot string) string {
	source := "snapshot: {mode: never}"
	if slot != "" {
		source += "\n    slot: " + slot + "\n    publication: bench"
	}
	return source
}

// jobSpec is a job over one table. source and sink are their parts, indented by four.
func jobSpec(name, table, interval, source, sink string) string {
	return fmt.Sprintf(`apiVersion: weir/v1
job: %s
epoch: {interval: %s}
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["%s"]
    %s
sinks:
  out:
    from: [db]
%s
`, name, interval, table, source, sink)
}

// start runs the product with a job over the wide table. database is the target's, if there is one; without a slot the
// job makes its own and follows the log from now on.
func (s *stand) start(interval, slot, database, sink string) *product {
	s.Helper()
	return s.startOn("bench.wide", interval, slot, database, sink)
}

func (s *stand) startOn(table, interval, slot, database, sink string) *product {
	s.Helper()
	return s.submit(table, interval, followed(slot), database, sink)
}

// submit runs the product with a job over a table.
func (s *stand) submit(table, interval, source, database, sink string) *product {
	s.Helper()
	p := s.on(mesh.Up(s, s.urls(database)))
	p.submit(table, interval, source, sink)
	return p
}

// urls are what specs refer to.
func (s *stand) urls(database string) []string {
	return []string{"SOURCE_URL=" + s.source.URL("postgres"), "TARGET_URL=" + s.target.URL(database)}
}

// on is the product as a mesh that runs, with a job that has a name and is not there yet.
func (s *stand) on(m *mesh.Mesh) *product {
	s.Helper()
	s.counter++
	return &product{s: s, job: fmt.Sprintf("run-%d", s.counter), Mesh: m, Records: m.Records(s)}
}

// submit gives the product its job over a table.
func (p *product) submit(table, interval, source, sink string) {
	s := p.s
	s.Helper()
	file := p.File(s, p.job+".yaml", jobSpec(p.job, table, interval, source, sink))
	p.began = time.Now()
	p.Must(s, "job", "submit", file)
}

// stop ends the product in order, and takes its job's slot with it when that is its own.
func (p *product) stop() {
	p.s.Helper()
	p.Must(p.s, "job", "cancel", p.job, "--yes")
	for _, m := range p.Members {
		if _, err := m.Stop(p.s.Context()); err != nil {
			p.s.Fatal(err)
		}
	}
	if p.NATS == nil {
		return
	}
	if _, err := p.NATS.Stop(p.s.Context()); err != nil {
		p.s.Fatal(err)
	}
}

// await waits until the head record is as wanted.
func (p *product) await(within time.Duration, what string, wanted func(context.Context, job.Head) (bool, error)) job.Head {
	p.s.Helper()
	ctx, cancel := context.WithTimeout(p.s.Context(), within)
	defer cancel()
	// Looking costs the machine that is measured: 20 ms are less than a percent of a run.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		h, err := p.Now(ctx, p.job)
		var ok bool
		if err == nil {
			ok, err = wanted(ctx, h)
		}
		switch {
		case err == nil && ok:
			return h
		case err == nil && h.Phase.AtRest():
			p.s.Fatalf("wait for %s: the job is %s: %s %s", what, h.Phase, h.Reason.Code, h.Reason.Text)
		}
		select {
		case <-ctx.Done():
			p.s.Fatalf("wait for %s: %v, %v; end of the log:\n%s", what, ctx.Err(), err, p.Members[0].LogTail(4<<10))
		case <-tick.C:
		}
	}
}

// running waits until the sources may emit.
func (p *product) running() {
	p.s.Helper()
	p.await(settle, "the job to run", func(_ context.Context, h job.Head) (bool, error) { return h.Phase == job.Running, nil })
}

// rows is the number of rows that had left the sources by the head's durable epoch.
func (p *product) rows(ctx context.Context, h job.Head) (uint64, error) {
	if h.Durable == nil {
		return 0, nil
	}
	m, err := p.Manifest(ctx, p.job, h.Durable.Ref)
	if err != nil {
		return 0, err
	}
	var n uint64
	for _, t := range m.Tables {
		n += t.In
	}
	return n, nil
}

// committed waits until an epoch with n rows, counted since the job began, is committed, and returns when it was seen.
func (p *product) committed(n int) time.Time {
	p.s.Helper()
	var seen uint64
	h := p.await(10*time.Minute, fmt.Sprintf("a durable epoch with %d rows", n), func(ctx context.Context, h job.Head) (bool, error) {
		if h.Durable == nil || uint64(h.Durable.Epoch) == seen {
			return false, nil
		}
		seen = uint64(h.Durable.Epoch)
		got, err := p.rows(ctx, h)
		return err == nil && got >= uint64(n), err
	})
	last := h.Durable.Epoch
	p.await(5*time.Minute, "its commit", func(_ context.Context, h job.Head) (bool, error) { return h.Committed >= last, nil })
	return time.Now()
}

// drainSlot runs a job over a copy of a slot until n rows are committed, and returns how long that took from the start
// of the session that reads the log.
func (s *stand) drainSlot(from string, n int, database, sink string) time.Duration {
	s.Helper()
	slot, drop := s.copySlot(from)
	p := s.start("200ms", slot, database, sink)
	began := s.sessionStart(slot, p.Members[0].Done())
	took := p.committed(n).Sub(began)
	p.stop()
	drop()
	return took
}

// The sinks that are measured.
func blackhole() string { return "    type: blackhole" }

func parquet(dir string) string {
	return "    type: files\n    mode: append\n    files: {path: " + dir + ", format: parquet}"
}

func upsert() string {
	return "    type: postgres\n    url: ${TARGET_URL}\n    schema: bench\n    existing: keep"
}

// sameRows compares the target's table with the source's: speed without the rows would be nothing.
func (s *stand) sameRows(database string) {
	s.Helper()
	outcomes, err := audit.CompareTables(s.Context(), audit.CompareConfig{
		SourceURL: s.source.URL("postgres"), TargetURL: s.target.URL(database),
		Tables: []audit.TablePair{{Source: "bench.wide", Target: "bench.wide"}},
	})
	if err != nil {
		s.Fatal(err)
	}
	if !outcomes[0].Equal() {
		s.Fatal(outcomes[0])
	}
}
