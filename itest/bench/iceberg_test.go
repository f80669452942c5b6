package bench_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/bench"
	"weir.dev/weir/itest/harness"
)

var (
	icebergRows   = flag.Int("iceberg-rows", 1_000_000, "rows of the logs and of the copy into Iceberg tables; the page says how many there were")
	icebergRuns   = flag.Int("iceberg-runs", 3, "runs of each kind into Iceberg tables")
	icebergMemory = flag.Int("iceberg-memory-rows", 10_000_000, "rows that are moved into Iceberg tables while memory is watched")
	icebergTiny   = flag.Int("iceberg-tiny", 1000, "tiny epochs that are committed one after the other")
	icebergParts  = flag.String("iceberg-parts", strings.Join(bench.IcebergParts(), ","), "what is measured; the page keeps the rest as it is")
)

// TestIcebergMeasures runs figures once with next to no rows, so that the benchmark works when it is wanted. What is left out shares
// its code with benchmarks that are tried too.
func TestIcebergMeasures(t *testing.T) {
	r := bench.Iceberg(t, bench.IcebergConfig{
		Rows: 3000, Runs: 1, LatencyFor: 2 * time.Second, TinyEpochs: 70, Parts: []string{"log", "latency", "tiny"},
	})
	text := r.Markdown("# Before\n\n## The log of MySQL\n\n| kept |\n\n## Where the time goes\n\nBy hand.\n")
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Count(text, "rows/s") != 5 || strings.Count(text, "\n## ") != 5 ||
		!strings.Contains(text, "| kept |") || !strings.HasSuffix(text, "By hand.\n") {
		t.Error(text)
	}
}

// BenchmarkIceberg is `make bench-iceberg`: it writes docs/bench/iceberg.md.
func BenchmarkIceberg(b *testing.B) {
	root, err := harness.RepoRoot()
	if err != nil {
		b.Fatal(err)
	}
	parts := strings.Split(*icebergParts, ",")
	for _, p := range parts {
		if !slices.Contains(bench.IcebergParts(), p) {
			b.Fatalf("there is no part %q, only %q", p, bench.IcebergParts())
		}
	}
	keep := func(r *bench.IcebergReport) {
		before, err := os.ReadFile(filepath.Join(root, "docs", "bench", "iceberg.md"))
		if err != nil && !os.IsNotExist(err) {
			b.Fatal(err)
		}
		write(b, "iceberg.md", r.Markdown(string(before)))
	}
	for b.Loop() {
		bench.Iceberg(b, bench.IcebergConfig{
			Rows: *icebergRows, Runs: *icebergRuns, MemoryRows: *icebergMemory, LatencyFor: 15 * time.Second,
			TinyEpochs: *icebergTiny, Parts: parts, Keep: keep,
		})
	}
}
