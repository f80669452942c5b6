package badinput

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

// brokenSpec: all that is wrong with a file is said at once, with its place and what would be right; nothing is stored.
// The goldens of single problems are in pkg/spec.
func brokenSpec(t trial) {
	const broken = `apiVersion: weir/v1
job: Broken
sources:
  db:
    type: postgres
    ulr: ${SHOP_URL}
    tables: ["public.*"]
sinks:
  copy:
    from: [bd]
    type: postgres
    url: ${COPY_URL}
    mode: upsrt
`
	file := t.mesh.File(t, "broken.yaml", broken)
	for _, command := range [][]string{{"validate", file}, {"job", "submit", file}} {
		a := t.mesh.Ask(t, append(command, "--json")...)
		if a.Exit != fault.ExitRequest {
			t.Errorf("exit %d, want %d: %s", a.Exit, fault.ExitRequest, a)
		}
		f, err := a.Fault()
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[string]string)
		for _, p := range f.Problems {
			found[fmt.Sprintf("%d:%d", p.Line, p.Column)] = p.DidYouMean + strings.Join(p.Allowed, ",")
		}
		for place, hint := range map[string]string{"2:6": "", "6:5": "url", "10:12": "db", "13:11": "upsert"} {
			if got, ok := found[place]; !ok || !strings.Contains(got, hint) {
				t.Errorf("%v: no problem at %s that hints at %q; found %v", command, place, hint, found)
			}
		}
		text := t.mesh.Ask(t, command...)
		if !strings.Contains(text.Stderr, "6:5 sources.db.ulr") || !strings.Contains(text.Stderr, string(fault.SpecInvalid)) {
			t.Errorf("the text does not name place and code: %s", text)
		}
	}
	if list := t.mesh.Must(t, "job", "list").Stdout; strings.Contains(strings.ToLower(list), "broken") {
		t.Errorf("a broken spec was stored:\n%s", list)
	}
}

// literalPassword: a mesh refuses a password in the file, and does not repeat it.
func literalPassword(t trial) {
	spec := fmt.Sprintf(`apiVersion: weir/v1
job: literal
sources: {made: {type: generator, rate: 10}}
sinks:
  copy: {from: [made], type: postgres, url: "postgres://someone:%s@127.0.0.1:1/db"}
`, t.canary("LITERAL"+rand.Text()))
	a := t.mesh.Ask(t, "job", "submit", t.mesh.File(t, "literal.yaml", spec))
	if a.Exit != fault.ExitRequest || !strings.Contains(a.Stderr, "${file:") {
		t.Errorf("a literal password was not refused with the remedy: %s", a)
	}
}

// unsetReference: the process that needs a value does not have it.
func unsetReference(t trial) {
	f := t.newFlow(t, "unset", setup{})
	spec := strings.Replace(f.spec(t), f.mesh.Reference(f.name+"-target"), "${NOBODY_HAS_SET_THIS}", 1)
	f.mesh.Must(t, "job", "submit", f.mesh.File(t, "unset.yaml", spec))
	f.fails(t, fault.ConfUnresolved)
}

// TestSlotDroppedWhileDown is about `weir up`, and its values come from the environment: it is stopped, the slot is
// dropped, it is started again. It must say so, and not begin a new history on top of the old one.
func TestSlotDroppedWhileDown(t *testing.T) {
	s := &scene{source: harness.StartPostgres(t, harness.PostgresConfig{}), target: harness.StartPostgres(t, harness.PostgresConfig{})}
	s.canary(s.source.Admin.Password)
	s.canary(s.target.Admin.Password)
	s.mesh = mesh.Up(t, []string{"SOURCE_URL=" + s.source.URL("slotgone"), "TARGET_URL=" + s.target.URL("slotgone")})
	f := s.newFlow(t, "slotgone", setup{})
	s.records = s.mesh.Records(t)
	published := s.listen(t)
	spec := strings.NewReplacer(
		s.mesh.Reference("slotgone-source"), "${SOURCE_URL}",
		s.mesh.Reference("slotgone-target"), "${TARGET_URL}",
	).Replace(f.spec(t))
	s.mesh.Submit(t, f.name, spec)
	f.write(t, "INSERT INTO t VALUES (1, 1)")
	f.equal(t)

	up := s.mesh.Members[0]
	if code, err := up.Stop(t.Context()); err != nil || code != fault.ExitOK {
		t.Fatalf("weir up ended with %d, %v", code, err)
	}
	f.write(t, "INSERT INTO t VALUES (2, 2)")
	f.dropSlot(t)
	if err := up.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.fails(t, fault.PGSlotMissing)
	f.staysFailed(t, fault.PGSlotMissing)
	if n, err := harness.Value[int](t.Context(), s.target, f.name, "SELECT count(*) FROM copied.t"); err != nil || n != 1 {
		t.Errorf("the target has %d rows, %v; it had 1", n, err)
	}
	s.silent(t, published)

	// The way out that this build has: another life, into the same table.
	s.mesh.Must(t, "job", "delete", f.name, "--yes")
	harness.Await(t, 30*time.Second, "the job to be deleted", func(ctx context.Context) error {
		h, err := s.records.Now(ctx, f.name)
		if err == nil && h.Phase != job.Deleted {
			err = fmt.Errorf("it is %s", h.Phase)
		}
		return err
	})
}
