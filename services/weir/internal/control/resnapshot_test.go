package control

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

func TestResnapshotted(t *testing.T) {
	t.Parallel()
	j, err := spec.Parse([]byte(`
apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${URL}", tables: ["public.*", 'Odd."T.x"', "!public.audit"]}
  other: {type: postgres, url: "${URL}", tables: ["other.*"]}
  made: {type: generator, rows: 1}
sinks:
  warehouse: {from: [db], type: postgres, url: "${OUT}", allow: [truncate]}
  strict: {from: [other], type: postgres, url: "${OUT}"}
  history: {from: [other], type: postgres, url: "${OUT}", mode: changelog}
  count: {from: [made], type: blackhole}
`), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for tables, want := range map[string]string{
		"public.b public.a public.a": "public.a public.b",
		`Odd."T.x"`:                  "Odd.T.x",
		"public.audit":               "no source",
		"public.*":                   "without stars",
		"public":                     "without stars",
		"other.a":                    "does not allow it",
		"public.a other.a":           "does not allow it",
		"":                           "does not allow it",
	} {
		got, err := resnapshotted(j, strings.Fields(tables))
		if err == nil {
			if strings.Join(got, " ") != want {
				t.Errorf("%q: %v, want %s", tables, got, want)
			}
			continue
		}
		if e := fault.Of(err); e.Code != fault.CLIResnapshot || !strings.Contains(e.Why, want) {
			t.Errorf("%q: %v, want %s", tables, err, want)
		}
	}
	j.Sinks = slices.DeleteFunc(j.Sinks, func(k spec.Sink) bool { return k.Name == "strict" })
	if got, err := resnapshotted(j, nil); err != nil || got != nil {
		t.Errorf("all tables: %v, %v", got, err)
	}
}
