package spec_test

import (
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

func columnsOf(t *testing.T, text string) *spec.Columns {
	t.Helper()
	j := parse(t, "apiVersion: weir/v1\njob: a\nsources: {db: {type: postgres, url: \"${URL}\", tables: [\"public.*\"], columns: "+text+
		"}}\nsinks: {out: {from: [db], type: blackhole}}\n")
	return &j.Sources[0].Config.(*spec.PostgresSource).Columns
}

// A column that several patterns match is treated by the one that shows least, wherever it stands.
func TestColumnsShowLeast(t *testing.T) {
	t.Parallel()
	c := columnsOf(t, `{exclude: [public.a.x, 'public."b.c".*'], mask: {"public.*.email": hash, public.a.email: redact, "*.*.phone": null, public.a.phone: hash, public.a.x: hash}, salt: "${SALT}"}`)
	for column, want := range map[string]string{
		"public a x": "exclude", "public b.c anything": "exclude", "public a email": "redact", "public b email": "hash",
		"other a phone": "null", "public a phone": "null", "public a y": "", "public b x": "", "other b email": "",
	} {
		f := strings.Fields(column)
		got := string(c.MaskOf(f[0], f[1], f[2]))
		if c.Excludes(f[0], f[1], f[2]) {
			got = "exclude"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", column, got, want)
		}
	}
}

func TestColumnsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{exclude: [public.a]}`:                                  "schema.table.column",
		`{exclude: ["!public.a.b"]}`:                             "exclamation mark",
		`{exclude: [public.a.]}`:                                 "empty",
		`{mask: {public.a.b: hash}}`:                             "needs a salt",
		`{mask: {public.a.b: hash}, salt: pepper}`:               "must be a reference",
		`{mask: {public.a.b: hsah}, salt: "${SALT}"}`:            "hash",
		`{mask: {public.a.b: 7}}`:                                "one of null, redact and hash",
		`{mask: [public.a.b]}`:                                   "a mapping of columns",
		`{exclude: [public.a.b], mask: {a.b: redact}, salt: ""}`: "schema.table.column",
	} {
		_, err := spec.Parse([]byte("apiVersion: weir/v1\njob: a\nsources: {db: {type: postgres, url: \"${URL}\", tables: [\"public.*\"], columns: "+text+
			"}}\nsinks: {out: {from: [db], type: blackhole}}\n"), "job.yaml")
		if err == nil {
			t.Errorf("%s: taken", text)
			continue
		}
		var all strings.Builder
		for _, p := range fault.Of(err).Problems {
			all.WriteString(p.String() + "\n")
		}
		if !strings.Contains(all.String(), want) {
			t.Errorf("%s: %s does not say %q", text, all.String(), want)
		}
		if strings.Contains(all.String(), "pepper") {
			t.Errorf("%s: the salt is shown", text)
		}
	}
}
