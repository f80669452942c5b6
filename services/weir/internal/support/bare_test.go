package support

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
)

// ⚑ What subtasks and sinks keep in a manifest may be keys and rows: it is left out, its size is told, and the manifest that
// was read is not changed.
func TestAManifestIsBare(t *testing.T) {
	t.Parallel()
	const canary = "CANARY"
	reader, writer := plan.SubtaskID{Vertex: "db"}, plan.SubtaskID{Vertex: "out", Index: 1}
	m := &epoch.Manifest{
		Job: "shop", Epoch: 7,
		Subtasks: map[plan.SubtaskID]epoch.SubtaskState{reader: {State: epoch.State{Inline: []byte(canary)}}, writer: {}},
		Sinks: map[string]epoch.SinkState{"out": {Staged: []epoch.Staged{
			{Epoch: 7, Subtask: writer, Data: json.RawMessage(`{"key":"` + canary + `"}`), Rows: 3},
		}}},
	}
	before, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(bare(epoch.Link{Ref: epoch.Ref{Epoch: 7, Digest: "d"}, Manifest: m}))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, gone := range []string{canary, "Q0FOQVJZ"} { // plain, and as bytes are written
		if strings.Contains(text, gone) || !strings.Contains(string(before), canary) {
			t.Errorf("%s is in %s", gone, text)
		}
	}
	for _, there := range []string{`"digest":"d"`, `"rows":3`, `"state of db-0":6`, `"staged data of out-1, epoch 7":16`} {
		if !strings.Contains(text, there) {
			t.Errorf("%s is missing from %s", there, text)
		}
	}
	if after, err := json.Marshal(m); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the manifest that was read is now %s, %v", after, err)
	}
	d := &plan.Deployment{Spec: json.RawMessage(`"` + canary + `"`)}
	if c, err := json.Marshal(withoutSpec(d)); err != nil || strings.Contains(string(c), canary) || string(d.Spec) == "null" {
		t.Errorf("%s, %v", c, err)
	}
}

// Texts may quote foreign errors: passwords in them are hidden, in files and in the index.
func TestTextsAreScrubbed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := &writer{tar: tar.NewWriter(&out)}
	b.text("a.txt", []byte("dial postgres://u:CANARY@h/db: password=CANARY"))
	b.json("b.json", nil, errors.New("dial nats://u:CANARY@h: refused"))
	b.json("index.json", b.index, nil)
	if err := errors.Join(b.err, b.tar.Close()); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "CANARY") || !strings.Contains(text, "refused") {
		t.Errorf("%q", text)
	}
	if len(b.index.Files) != 2 || len(b.index.Missing) != 1 || b.index.Missing[0].Name != "b.json" {
		t.Errorf("%+v", b.index)
	}
}
