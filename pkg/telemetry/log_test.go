package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
)

func TestFormat(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, tt := range []struct {
		format Format
		json   bool
	}{{FormatAuto, true}, {FormatJSON, true}, {FormatText, false}} {
		var out bytes.Buffer
		NewLogger(&out, tt.format, slog.LevelInfo).Info("lease renewed", KeyEpoch, 7)
		if json.Valid(out.Bytes()) != tt.json {
			t.Errorf("%s: %s", tt.format, out.String())
		}
	}
	if isTerminal(file) {
		t.Error("a file is taken for a terminal")
	}
	var out bytes.Buffer
	NewLogger(&out, FormatJSON, slog.LevelWarn).Info("lease renewed")
	if out.Len() > 0 {
		t.Errorf("below the level: %s", out.String())
	}
}

func TestErrorsAreLoggedByTheirFields(t *testing.T) {
	cause := errors.New("dial postgres://u:canary-5f1d@h/d")
	err := fmt.Errorf("open reader: %w", fault.Wrap(cause, fault.PGCannotConnect, "sources.db", "connection refused", "where", "sources.db"))
	var out bytes.Buffer
	l := NewLogger(&out, FormatJSON, slog.LevelInfo)
	l.Warn("reader failed", Err(err))
	l.Warn("reader failed", "error", err, "url", config.NewSecret("canary-5f1d"))
	l.Warn("plain", "error", errors.New("eof"))
	if strings.Contains(out.String(), "canary") { // T2
		t.Errorf("a secret is logged: %s", out.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines[:2] {
		var r struct {
			Error struct{ Code, Class, Where, Text, Remedy string }
			URL   string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Error.Code != "WEIR-PG-001" || r.Error.Class != "transient" || r.Error.Where != "sources.db" ||
			!strings.HasPrefix(r.Error.Text, "open reader: WEIR-PG-001") || r.Error.Remedy == "" {
			t.Errorf("got %s", line)
		}
	}
	if !strings.Contains(lines[1], `"url":"***"`) || !strings.Contains(lines[2], `"error":"eof"`) {
		t.Errorf("got %s\n%s", lines[1], lines[2])
	}
}
