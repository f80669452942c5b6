package mesh

import (
	"testing"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/fault"
)

func TestAnUnknownServiceStartsNothing(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"butler"}, {"sink", "butler"}} {
		if _, err := Execute(app.Process{}, names...); fault.CodeOf(err) != fault.CLIUsage {
			t.Errorf("Execute(%v): %v", names, err)
		}
	}
	if err := Run(t.Context(), app.Env{}, "sink", "butler"); fault.CodeOf(err) != fault.CLIUsage {
		t.Errorf("Run: %v", err)
	}
}
