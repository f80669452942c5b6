package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/report"
)

func TestAValueKeepsItsAccuracy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		value report.Value[uint64]
		want  string
	}{
		{"exact zero is a value", report.ExactOf[uint64](0), `{"value":0,"accuracy":"EXACT"}`},
		{"best effort", report.BestEffortOf[uint64](7), `{"value":7,"accuracy":"BEST_EFFORT"}`},
		{"unsupported", report.UnsupportedOf[uint64](), `{"accuracy":"UNSUPPORTED"}`},
		{"the zero Value is not a zero", report.Value[uint64]{}, `{"accuracy":"UNAVAILABLE"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, err := json.Marshal(tc.value)
			if err != nil || string(b) != tc.want {
				t.Fatalf("encodes as %s, %v, want %s", b, err, tc.want)
			}
			var back report.Value[uint64]
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			got, ok := back.Get()
			want, has := tc.value.Get()
			if got != want || ok != has || back.Accuracy() != tc.value.Accuracy() {
				t.Errorf("decodes as %d, %t, %s", got, ok, back.Accuracy())
			}
		})
	}
}

func TestAContradictionIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"accuracy":"EXACT"}`, `{"accuracy":"BEST_EFFORT"}`, `{"value":0,"accuracy":"UNAVAILABLE"}`, `{"value":0,"accuracy":"UNSUPPORTED"}`,
		`{"value":0}`, `{"value":0,"accuracy":"ABOUT"}`, `{"value":"x","accuracy":"EXACT"}`, `{}`, `0`,
	} {
		var v report.Value[uint64]
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			n, ok := v.Get()
			t.Errorf("%s is taken as %d, %t, %s", text, n, ok, v.Accuracy())
		}
	}
}

func TestABatchComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := report.Batch{
			Version: report.BatchVersion, Node: rapid.String().Draw(t, "node"), Incarnation: "i",
			At: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0).UTC(),
			Reports: []report.Envelope{{
				Job: "j", Subtask: "s-0", Fence: rapid.Uint64().Draw(t, "fence"), Sequence: rapid.Uint64().Draw(t, "sequence"),
				Reader: &report.Reader{Connector: "generator", Lifecycle: report.Incremental, Rows: report.ExactOf(rapid.Uint64().Draw(t, "rows"))},
			}},
		}
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := report.ParseBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(got)
		if err != nil || string(again) != string(b) {
			t.Fatalf("%s\ncomes back as\n%s, %v", b, again, err)
		}
	})
}

func TestABatchOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"version":2}`, `{"version":0}`, `{}`, `{"version":"1"}`, ``} {
		if _, err := report.ParseBatch([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "parse report batch") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
