package control

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

const applied = `
apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${URL}", tables: ["public.*"], readers: 2}
sinks:
  warehouse: {from: [db], type: postgres, url: "${OUT}"}
`

func TestInPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ old, new, want string }{
		{"", "", ""},
		{`["public.*"]`, `["public.*", "other.t"]`, "sources.db.tables"},
		{`url: "${OUT}"`, `url: "${OUT}", allow: [truncate]`, "sinks.warehouse.allow"},
		{"job: shop", "job: shop\nepoch: {interval: 2s}", "epoch.interval"},
		{"readers: 2", "readers: 2, snapshot: {chunk_rows: 5}, heartbeat: 3s", "sources.db.heartbeat sources.db.snapshot.chunk_rows"},
		{"readers: 2", "readers: 3", "sources.db.readers"},
		{"readers: 2", "readers: 2, snapshot: {mode: never}", "refused sources.db.snapshot.mode"},
		{`"${URL}"`, `"${OTHER}"`, "refused sources.db.url"},
		{"readers: 2", "readers: 2, columns: {exclude: [public.a.b]}", "refused sources.db.columns.exclude"},
		{`url: "${OUT}"`, `url: "${OUT}", mode: changelog`, "refused sinks.warehouse.mode"},
		{"sinks:", "sinks:\n  more: {from: [db], type: blackhole}", "refused sinks.more"},
	} {
		running, err := spec.Parse([]byte(applied), "shop.yaml")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(applied, tt.old, tt.new, 1)
		wanted, err := spec.Parse([]byte(text), "shop.yaml")
		if err != nil {
			t.Fatal(err)
		}
		paths, err := inPlace(running, wanted)
		got := strings.Join(paths, " ")
		if err != nil {
			if fault.CodeOf(err) != fault.CLIApply {
				t.Errorf("%q: %v", tt.new, err)
			}
			got = "refused " + fault.Of(err).Where
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.new, got, tt.want)
		}
	}
}

func TestBeyond(t *testing.T) {
	t.Parallel()
	a, b := map[string]bool{"db/public.b": true, "db/public.a": true, "db/public.c": true}, map[string]bool{"db/public.b": true}
	if got := beyond(a, b); !slices.Equal(got, []string{"db/public.a", "db/public.c"}) {
		t.Errorf("got %v", got)
	}
	if got := beyond(b, a); got == nil || len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
