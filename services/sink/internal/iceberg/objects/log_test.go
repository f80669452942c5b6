package objects

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	iceio "github.com/apache/iceberg-go/io"
	"github.com/aws/smithy-go/logging"

	"weir.dev/weir/pkg/telemetry"
)

// What the SDK says is a record of the sink's log, as the warning of a torn answer is.
func TestLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.NewLogger(&out, telemetry.FormatJSON, slog.LevelDebug).With(telemetry.KeyService, "sink", telemetry.KeyNode, "n1")
	s := &server{harms: map[int]harm{0: {after: 40}}}
	files := s.start(t, t.Context(), log.Handler())
	if err := files.(iceio.ListableIO).WalkDir("s3://lake/", func(_ string, _ fs.DirEntry, err error) error { return err }); err != nil {
		t.Fatal(err)
	}
	said := make(map[string]string)
	for line := range strings.Lines(out.String()) {
		var r struct{ Level, Msg, Line, Service, Node string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Level != "WARN" || r.Service != "sink" || r.Node != "n1" {
			t.Errorf("record %s", line)
		}
		said[r.Msg] = r.Line
	}
	if _, ok := said["answer of the object store is torn"]; !ok {
		t.Errorf("nothing is said of the torn answer: %q", said)
	}
	if !strings.HasPrefix(said["object store client"], "failed to discard remaining HTTP response body") {
		t.Errorf("the SDK says %q", said)
	}
}

// Nothing of a request gets into the log, and no secret that a warning might quote.
func TestLogKeepsSecrets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := sdkLog{telemetry.NewLogger(&out, telemetry.FormatJSON, slog.LevelDebug)}
	l.Logf(logging.Debug, "Request\n%v", "PUT /lake/object Authorization: AWS4-HMAC-SHA256 Signature=abc")
	if out.Len() > 0 {
		t.Errorf("logged %s", out.String())
	}
	l.Logf(logging.Warn, "cannot speak to %s", "https://weir:hunter2@store")
	if strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), "https://***@store") {
		t.Errorf("logged %s", out.String())
	}
}
