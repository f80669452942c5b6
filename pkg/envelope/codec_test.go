package envelope

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// samples is one message of every kind, as this version writes it.
func samples() map[string]Envelope {
	return map[string]Envelope{
		"rows": {
			Kind: Rows, Fence: 17, Epoch: 42, Seq: 7, Table: "public.orders", RowCount: 2,
			Position: "POSTGRES_LSN:lsn=16/B374D848",
			Trace:    map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
			Payload:  []byte("arrow"),
		},
		"rows_claim_check": {
			Kind: Rows, Fence: 17, Epoch: 42, Seq: 8, Table: "public.my table", RowCount: 1,
			Ref: `{"subject":"weir.state.l1.17.42.db-0.1","size":9000000,"digest":"xxh3:00"}`,
		},
		"barrier":   {Kind: Barrier, Fence: 17, Epoch: 42, Seq: 9, Payload: []byte(`{"kind":"PERIODIC","durable":41}`)},
		"watermark": {Kind: Watermark, Fence: 17, Epoch: 43, Seq: 10, Payload: []byte(`{}`)},
		"status":    {Kind: Status, Fence: 17, Seq: 1, Payload: []byte(`{"split":1}`)},
		"end":       {Kind: End, Fence: 17, Seq: 11},
		"ready":     {Kind: Ready, Fence: 17, Payload: []byte(`{"fence":17,"subtask":"db-0"}`)},
		"ack":       {Kind: Ack, Fence: 17, Epoch: 42, Payload: []byte(`{"fence":17,"subtask":"db-0","epoch":42}`)},
		"committed": {Kind: Committed, Fence: 17, Epoch: 42, Payload: []byte(`{"fence":17,"subtask":"pg_commit-0"}`)},
		"input":     {Kind: Input, Fence: 17, Payload: []byte(`{"fence":17,"subtask":"db-0","after":41}`)},
		"drained":   {Kind: Drained, Fence: 17, Payload: []byte(`{"fence":17,"subtask":"db-0"}`)},
		"released":  {Kind: Released, Fence: 17, Payload: []byte(`{"fence":17,"node":"n1"}`)},
		"failed":    {Kind: Failed, Fence: 17, Payload: []byte(`{"fence":17,"subtask":"db-0","class":"bug"}`)},
	}
}

// wire writes a message as the NATS protocol does, header keys in order.
func wire(e *Envelope) []byte {
	var b bytes.Buffer
	b.WriteString("NATS/1.0\r\n")
	h := e.Header()
	for _, k := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&b, "%s: %s\r\n", k, h[k][0])
	}
	b.WriteString("\r\n")
	b.Write(e.Payload)
	return b.Bytes()
}

func unwire(t testing.TB, b []byte) (map[string][]string, []byte) {
	t.Helper()
	head, payload, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		t.Fatal("sample has no end of headers")
	}
	h := map[string][]string{}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if k, v, ok := strings.Cut(line, ": "); ok {
			h[k] = append(h[k], v)
		}
	}
	if len(payload) == 0 {
		payload = nil
	}
	return h, payload
}

// E3: what version 1 wrote stays readable, byte for byte the same.
func TestWireSamples(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "schemas", "testdata", "envelope", "v1")
	for name, want := range samples() {
		path := filepath.Join(dir, name+".msg")
		if *update {
			if err := os.WriteFile(path, wire(&want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := wire(&want); !bytes.Equal(got, raw) {
			t.Errorf("%s is written as\n%s\nsample is\n%s", name, got, raw)
		}
		got, err := Parse(unwire(t, raw))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s reads as %+v, want %+v", name, got, want)
		}
	}
}

// E1: every defect is an error.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(h map[string][]string){
		"no version":       func(h map[string][]string) { delete(h, hdrVersion) },
		"newer version":    func(h map[string][]string) { h[hdrVersion] = []string{"2"} },
		"no kind":          func(h map[string][]string) { delete(h, hdrKind) },
		"unknown kind":     func(h map[string][]string) { h[hdrKind] = []string{"row"} },
		"no fence":         func(h map[string][]string) { delete(h, hdrFence) },
		"fence zero":       func(h map[string][]string) { h[hdrFence] = []string{"0"} },
		"two fences":       func(h map[string][]string) { h[hdrFence] = []string{"1", "2"} },
		"no number":        func(h map[string][]string) { delete(h, hdrSeq) },
		"padded number":    func(h map[string][]string) { h[hdrSeq] = []string{"07"} },
		"huge count":       func(h map[string][]string) { h[hdrRows] = []string{"9223372036854775808"} },
		"no count":         func(h map[string][]string) { delete(h, hdrRows) },
		"no table":         func(h map[string][]string) { delete(h, hdrTable) },
		"empty table":      func(h map[string][]string) { h[hdrTable] = []string{""} },
		"bare blank":       func(h map[string][]string) { h[hdrTable] = []string{"a b"} },
		"needless escape":  func(h map[string][]string) { h[hdrTable] = []string{"%41"} },
		"lower hex":        func(h map[string][]string) { h[hdrTable] = []string{"%0a"} },
		"cut escape":       func(h map[string][]string) { h[hdrTable] = []string{"%2"} },
		"ref and payload":  func(h map[string][]string) { h[hdrRef] = []string{"{}"} },
		"stranger":         func(h map[string][]string) { h["Weir-Compression"] = []string{"zstd"} },
		"barrier no epoch": func(h map[string][]string) { h[hdrKind] = []string{"barrier"}; delete(h, hdrEpoch) },
		"barrier of rows":  func(h map[string][]string) { h[hdrKind] = []string{"barrier"} },
		"numbered fact":    func(h map[string][]string) { h[hdrKind] = []string{"ack"} },
	} {
		e := samples()["rows"]
		h := e.Header()
		spoil(h)
		if _, err := Parse(h, e.Payload); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: Parse gave %v, want ErrMalformed", name, err)
		}
	}
}

// E2 for anything a source may call its tables.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := Envelope{
			Kind: Rows, Fence: 1, Seq: rapid.Uint64Range(1, maxNumber).Draw(t, "seq"), RowCount: 1,
			Table:    rapid.StringN(1, 30, -1).Draw(t, "table"),
			Position: rapid.String().Draw(t, "position"),
			Ref:      rapid.String().Draw(t, "ref"),
		}
		got, err := Parse(unwireRapid(wire(&want)))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
}

func unwireRapid(b []byte) (map[string][]string, []byte) {
	return unwire(&testing.T{}, b)
}

func FuzzParse(f *testing.F) {
	for _, e := range samples() {
		f.Add(wire(&e))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !bytes.Contains(b, []byte("\r\n\r\n")) {
			return
		}
		h, payload := unwire(t, b)
		e, err := Parse(h, payload)
		if err != nil {
			return
		}
		again, err := Parse(e.Header(), e.Payload)
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("%+v reads back as %+v, %v", e, again, err)
		}
	})
}
