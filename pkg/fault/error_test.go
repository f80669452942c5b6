package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorForms(t *testing.T) {
	e := New(PGSlotLost, "sources.db", "slot weir_shop_db: wal_status=lost", "job", "shop")
	wantLine := "WEIR-PG-009 the slot has lost log that the job still needs: slot weir_shop_db: wal_status=lost (sources.db)"
	if e.Error() != wantLine {
		t.Errorf("Error()\n got %s\nwant %s", e.Error(), wantLine)
	}
	if !strings.Contains(e.Remedy, "weir job resnapshot shop") {
		t.Errorf("remedy not filled: %s", e.Remedy)
	}
	text := e.Text()
	for _, want := range []string{"error WEIR-PG-009: ", "\n  where   sources.db", "\n  why     slot", "\n  remedy  The changes"} {
		if !strings.Contains(text, want) {
			t.Errorf("Text() lacks %q:\n%s", want, text)
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back Error
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Error() != e.Error() || back.Remedy != e.Remedy || back.Class() != Permanent {
		t.Errorf("round trip changed the error: %s", data)
	}
	for _, want := range []string{`"name":"PG_SLOT_LOST"`, `"class":"permanent"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("JSON lacks %s: %s", want, data)
		}
	}
}

// F4: a cause may quote a connection string, so no form shows it.
func TestCauseIsNotShown(t *testing.T) {
	err := Wrap(errors.New("dial postgres://u:canary@h/d"), PGCannotConnect, "sources.db", "connection refused")
	data, jerr := json.Marshal(err)
	if jerr != nil {
		t.Fatal(jerr)
	}
	for _, form := range []string{err.Error(), Of(err).Text(), string(data)} {
		if strings.Contains(form, "canary") {
			t.Errorf("the cause leaks: %s", form)
		}
	}
}

func TestProblemString(t *testing.T) {
	p := Problem{Line: 3, Column: 5, Path: "sinks.w.mode", What: `unknown value "upset"`, Allowed: []string{"upsert", "append"}, Suggest: "upsert"}
	want := `3:5 sinks.w.mode: unknown value "upset"; allowed: upsert, append; did you mean "upsert"?`
	if p.String() != want {
		t.Errorf("got  %s\nwant %s", p, want)
	}
}

func TestExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{fmt.Errorf("submit: %w", New(SpecInvalid, "", "")), 2},
		{New(PGWrongPassword, "", ""), 3},
		{Transient, 3},
		{New(CLIVerifyFailed, "", ""), 4},
		{New(CLIWaitTimeout, "", ""), 5},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), 5},
		{Mark(Permanent, New(CLIWaitTimeout, "", "")), 5},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.err); got != tt.want {
			t.Errorf("ExitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestOf(t *testing.T) {
	coded := New(SpecInvalid, "job.yaml", "")
	if Of(fmt.Errorf("x: %w", coded)) != coded || CodeOf(fmt.Errorf("x: %w", coded)) != SpecInvalid {
		t.Error("the coded error was not found")
	}
	plain := errors.New("plain")
	if e := Of(plain); e.Code != AppInternal || !errors.Is(e, plain) || CodeOf(plain) != "" {
		t.Errorf("got %v", e)
	}
}
