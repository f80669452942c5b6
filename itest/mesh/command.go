package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Answer is what a command of the CLI said.
type Answer struct {
	Args           []string
	Stdout, Stderr string
	// Exit is the exit code, see docs/errors.md.
	Exit int
}

// String shows the command as a person would see it.
func (a Answer) String() string {
	return fmt.Sprintf("weir %s: exit %d\n%s%s", strings.Join(a.Args, " "), a.Exit, a.Stdout, a.Stderr)
}

// Fault is an error object as the CLI prints it.
type Fault struct {
	Code, Class, What, Where, Why, Remedy string
	Problems                              []struct {
		Line, Column int
		Path, What   string
		Allowed      []string
		DidYouMean   string
	}
}

// Data decodes the data of a --json answer.
func (a Answer) Data(into any) error {
	var envelope struct {
		APIVersion, Kind string
		Data             json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.Stdout), &envelope); err != nil {
		return fmt.Errorf("decode the answer: %w\n%s", err, a)
	}
	if envelope.APIVersion != "weir/v1" || envelope.Kind == "" || envelope.Data == nil {
		return fmt.Errorf("the answer is not in the one envelope:\n%s", a)
	}
	if err := json.Unmarshal(envelope.Data, into); err != nil {
		return fmt.Errorf("decode the answer's data: %w\n%s", err, a)
	}
	return nil
}

// Fault decodes the error of a --json answer.
func (a Answer) Fault() (Fault, error) {
	var envelope struct {
		Kind  string
		Error *Fault
	}
	if err := json.Unmarshal([]byte(a.Stderr), &envelope); err != nil {
		return Fault{}, fmt.Errorf("decode the error: %w\n%s", err, a)
	}
	if envelope.Kind != "Error" || envelope.Error == nil {
		return Fault{}, fmt.Errorf("the answer holds no error:\n%s", a)
	}
	return *envelope.Error, nil
}

// Weir runs one command against this mesh. An exit code is not an error.
func (m *Mesh) Weir(ctx context.Context, args ...string) (Answer, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, m.weir, args...)
	cmd.Dir = m.dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "WEIR_") || strings.HasPrefix(kv, "NATS_")
	}), append([]string{"NATS_URL=" + m.URL}, m.env...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	a := Answer{Args: args, Stdout: stdout.String(), Stderr: stderr.String(), Exit: cmd.ProcessState.ExitCode()}
	m.mu.Lock()
	m.answers = append(m.answers, a)
	m.mu.Unlock()
	if _, exited := errors.AsType[*exec.ExitError](err); exited && a.Exit >= 0 {
		err = nil
	}
	if err != nil {
		return a, fmt.Errorf("weir %s: %w", strings.Join(args, " "), err)
	}
	return a, nil
}

// Ask is Weir for tests: it fails only when the command cannot be run at all.
func (m *Mesh) Ask(tb testing.TB, args ...string) Answer {
	tb.Helper()
	a, err := m.Weir(tb.Context(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// Must is Ask for commands that have to succeed.
func (m *Mesh) Must(tb testing.TB, args ...string) Answer {
	tb.Helper()
	a := m.Ask(tb, args...)
	if a.Exit != 0 {
		tb.Fatal(a)
	}
	return a
}

// CaughtUp waits until everything committed at the sources before the call is committed at every sink.
func (m *Mesh) CaughtUp(tb testing.TB, job string) {
	tb.Helper()
	m.Must(tb, "status", job, "--wait-for", "caught-up", "--timeout", "90s")
}

// Verify has the history of a job audited by the product itself: the chain of manifests and the ledger of every sink.
func (m *Mesh) Verify(tb testing.TB, job string) {
	tb.Helper()
	var audit struct {
		Manifests int
		Ledgers   map[string]string
		Findings  []json.RawMessage
	}
	if err := m.Must(tb, "epochs", "verify", job, "--json").Data(&audit); err != nil {
		tb.Fatal(err)
	}
	if audit.Manifests == 0 || len(audit.Findings) > 0 {
		tb.Errorf("epochs verify: %+v", audit)
	}
	for sink, checked := range audit.Ledgers {
		if !strings.HasSuffix(checked, "commits checked") {
			tb.Errorf("epochs verify: ledger of %s: %s", sink, checked)
		}
	}
}

// Status is what `weir status NAME --json` says, as far as tests ask.
type Status struct {
	Phase  string
	Fence  uint64
	Reason struct{ Code, Text, Remedy string }
	Epoch  struct{ Durable, Committed uint64 }
	Sinks  []struct {
		Name    string
		Waiting *struct{ Fault Fault }
		Dead    int
	}
	Why []string
}

// Status asks how a job is.
func (m *Mesh) Status(tb testing.TB, job string) Status {
	tb.Helper()
	var s Status
	if err := m.Must(tb, "status", job, "--json").Data(&s); err != nil {
		tb.Fatal(err)
	}
	return s
}
