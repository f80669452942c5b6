package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/preflight"
)

// examine asks the doctor and returns what is not as it should be, and the exit code.
func (s *shell) examine(t *testing.T, flags ...string) (bad []preflight.Finding, exit int) {
	t.Helper()
	out, exit := s.run(t, "weir doctor --json "+strings.Join(flags, " "))
	var answer struct {
		Kind string
		Data struct{ Findings []preflight.Finding }
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Kind != "Checkup" {
		t.Fatalf("exit %d: %v\n%s", exit, err, out)
	}
	for _, f := range answer.Data.Findings {
		if err := f.Validate(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
		if f.Status != preflight.OK {
			bad = append(bad, f)
		}
	}
	return bad, exit
}

// treat runs what the doctor prints about the one finding, and looks whether it is gone.
func (s *shell) treat(t *testing.T, check string, status preflight.Status, code fault.Code, flags ...string) {
	t.Helper()
	bad, exit := s.examine(t, flags...)
	if len(bad) != 1 || bad[0].Check != check || bad[0].Status != status || bad[0].Code != code {
		t.Fatalf("found %+v, want one %s of %s with code %q", bad, status, check, code)
	}
	if want := map[bool]int{true: fault.ExitEnvironment, false: fault.ExitOK}[status == preflight.Error]; exit != want {
		t.Errorf("%s: exit %d, want %d", check, exit, want)
	}
	for _, c := range bad[0].Remedy.Commands {
		s.must(t, c)
	}
	if bad, _ := s.examine(t, flags...); len(bad) > 0 {
		t.Errorf("behind the remedy of %s: %+v", check, bad)
	}
}

// ⚑ What is wrong with a mesh's server is found, and gone behind the commands that are printed with it.
func TestRemediesOnAMesh(t *testing.T) {
	t.Parallel()
	m := mesh.Start(t, mesh.Config{Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}})
	m.Submit(t, "shop", job)
	s := newShell(t, m.URL)
	records := m.Records(t)
	ctx := t.Context()

	// What no client can see is said to be unknown; the server's monitoring address tells.
	if bad, exit := s.examine(t); len(bad) != 1 || bad[0].Check != "sync_interval" || bad[0].Status != preflight.Unknown || exit != 0 {
		t.Fatalf("of a sound mesh: %+v, exit %d", bad, exit)
	}
	monitor := "--nats-monitor " + m.NATS.Monitor
	if bad, _ := s.examine(t, monitor); len(bad) != 0 {
		t.Fatalf("with the monitoring address: %+v", bad)
	}
	if text := s.must(t, "weir doctor "+monitor); !strings.Contains(text, "always, by the server's monitoring address") || !strings.Contains(text, "NATS: 0 errors, 0 warnings\n") {
		t.Errorf("as text:\n%s", text)
	}
	if bad, _ := s.examine(t, "--nats-monitor 127.0.0.1:1"); len(bad) != 1 || !strings.Contains(bad[0].Found, "refused") {
		t.Errorf("a wrong monitoring address: %+v", bad)
	}

	gone := bus.DataConfig{Job: "gone", Fence: 4, Life: "l1"}
	if err := records.Bus.CreateData(ctx, gone); err != nil {
		t.Fatal(err)
	}
	s.treat(t, "leftover_stream", preflight.Warning, "", monitor)
	if fences, err := records.Bus.DataFences(ctx, "gone"); err != nil || len(fences) > 0 {
		t.Errorf("streams of the gone job: %v, %v", fences, err)
	}

	lost := bus.StateSubject("lostlife", 1, 1, plan.SubtaskID{Vertex: "lake"}, 0)
	if _, err := records.Bus.PutState(ctx, lost, []byte("x")); err != nil {
		t.Fatal(err)
	}
	s.treat(t, "leftover_state", preflight.Warning, "", monitor)

	if err := records.Bus.EnsureDLQ(ctx, "shop", 2000); err != nil {
		t.Fatal(err)
	}
	claim, err := records.Bus.ClaimDLQ(ctx, "shop", "lake", 1)
	if err == nil {
		err = records.Bus.PutDeadLetter(ctx, bus.DLQSubject("shop", "lake", "t", 1, 0), claim, nil, make([]byte, 1700))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.treat(t, "letters_room", preflight.Warning, "", monitor)

	// A missing stream is made by the next coordinator.
	s.must(t, "nats stream rm WEIR_EVENT -f")
	if bad, exit := s.examine(t, monitor); len(bad) != 1 || bad[0].Check != "base_streams" || bad[0].Subject != bus.EventStream || exit != 0 {
		t.Errorf("without the event stream: %+v, exit %d", bad, exit)
	}
	c := m.Of(mesh.Coordinator)[0]
	c.Kill()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, 30*time.Second, "a sound mesh", func(context.Context) error {
		if bad, _ := s.examine(t, monitor); len(bad) > 0 {
			return fmt.Errorf("%+v", bad)
		}
		return nil
	})
	if _, exit := s.run(t, "weir doctor --fix"); exit != fault.ExitRequest {
		t.Errorf("--fix without a file: exit %d", exit)
	}
}

// ⚑ Streams of others that keep a mesh from starting are found beforehand.
func TestRemediesOnAForeignServer(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	s := newShell(t, n.URL)
	monitor := "--nats-monitor " + n.Monitor
	if bad, exit := s.examine(t, monitor); len(bad) > 0 || exit != 0 {
		t.Fatalf("of a fresh server: %+v, exit %d", bad, exit)
	}
	s.must(t, "nats stream add ALL --subjects 'orders.>,weir.data.>' --defaults")
	s.treat(t, "foreign_stream", preflight.Error, fault.BusStreamShape, monitor)
	s.must(t, "nats stream add WEIR_ACK --subjects other --defaults")
	bad, _ := s.examine(t, monitor)
	missing := 0
	for _, f := range bad {
		switch {
		case f.Status == preflight.Warning && f.Check == "base_streams":
			missing++
		case f.Code == fault.BusStreamShape && f.Subject == bus.AckStream:
			for _, c := range f.Remedy.Commands {
				s.must(t, c)
			}
		default:
			t.Errorf("%+v", f)
		}
	}
	if bad, _ := s.examine(t, monitor); len(bad) > 0 || missing == 0 {
		t.Errorf("behind the remedy: %+v", bad)
	}
	n.Kill()
	if _, exit := s.run(t, "weir doctor"); exit != fault.ExitEnvironment {
		t.Errorf("of a server that is gone: exit %d", exit)
	}
}
