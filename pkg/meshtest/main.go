package meshtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/nats-io/nats-server/v2/server/ats"
	"go.uber.org/goleak"
)

// Main runs the tests of a package that uses [StartServer] and fails the run when a goroutine is left behind:
//
//	func TestMain(m *testing.M) { meshtest.Main(m) }
//
// The server's clock of access times is one goroutine per process that the first file store starts. Started inside a
// bubble it would belong to that bubble and never end; so it is registered here, outside of all.
func Main(m *testing.M, opts ...goleak.Option) {
	ats.Register()
	code := m.Run()
	ats.Unregister()
	if code == 0 {
		if err := goleak.Find(opts...); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines left behind: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}
