package iceberg

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// What the doctor finds before the first start, after it, for another job of the name, and at a catalog that does not do.
func TestDoctor(t *testing.T) {
	t.Parallel()
	server := startREST(t)
	for name, s := range map[string]spec.Sink{
		"sql": specOf(tempDir(t), spec.Upsert, both), "rest": server.spec(t, "", both),
	} {
		t.Run(name, func(t *testing.T) {
			goods := schemaOf(t, 1, text("name", 2))
			look := func(life string) string {
				found, err := Doctor(t.Context(), Checkup{
					Config:     sink.Config{Identity: source.Identity{Job: "suite", Life: life}, Sink: s, Resolve: resolve},
					LivesKnown: true, Tables: []*rows.Schema{goods},
				})
				if err != nil {
					t.Fatal(err)
				}
				var out []string
				for _, f := range found {
					out = append(out, strings.TrimSpace(fmt.Sprintln(f.Check, f.Subject, f.Status, f.Code)))
				}
				return strings.Join(out, "; ")
			}
			want := "catalog  ok; ledger  ok; table lake.goods_log ok; table lake.shop_goods ok; warehouse  ok"
			if name == "sql" {
				want = "catalog  ok; warehouse  ok"
			}
			if got := look(""); got != want {
				t.Errorf("before the start: %s", got)
			}
			sc := newScene(t, s)
			sc.epoch(t, sc.batch(t, goods, image{rows.OpInsert, 1, "a"}))
			if got := look("life"); got != "catalog  ok; ledger  ok; table lake.goods_log ok; table lake.shop_goods ok; warehouse  ok" {
				t.Errorf("of a job that runs: %s", got)
			}
			if got := look("another"); !strings.Contains(got, "ledger  error "+string(fault.JobLedgerForeign)) {
				t.Errorf("of another life: %s", got)
			}
		})
	}
	server.endpoints = []string{"GET /v1/{prefix}/namespaces"}
	found, err := Doctor(t.Context(), Checkup{Config: sink.Config{Sink: server.spec(t, "", both), Resolve: resolve}})
	if err != nil || len(found) != 1 || found[0].Code != fault.SinkCatalog {
		t.Errorf("a catalog without transactions: %+v, %v", found, err)
	}
}
