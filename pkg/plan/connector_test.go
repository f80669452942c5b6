package plan_test

import (
	"testing"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// What a sink can promise may depend on how it is told to commit.
func TestLevelOf(t *testing.T) {
	t.Parallel()
	ordered := &spec.IcebergSink{REST: spec.IcebergREST{Commit: spec.CommitOrdered}}
	for _, tt := range []struct {
		sink spec.Sink
		want plan.Level
	}{
		{spec.Sink{Type: "postgres", Config: &spec.PostgresSink{}}, plan.Transactional},
		{spec.Sink{Type: "iceberg", Config: &spec.IcebergSink{}}, plan.Transactional},
		{spec.Sink{Type: "iceberg", Config: ordered}, plan.Ordered},
		{spec.Sink{Type: "carrier-pigeon"}, ""},
	} {
		if got, ok := plan.LevelOf(tt.sink); got != tt.want || ok != (tt.want != "") {
			t.Errorf("LevelOf(%s) = %s, %t, want %s", tt.sink.Type, got, ok, tt.want)
		}
	}
}
