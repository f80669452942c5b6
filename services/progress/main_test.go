package progress

import (
	"testing"

	"weir.dev/weir/pkg/meshtest"
)

func TestMain(m *testing.M) { meshtest.Main(m) }
