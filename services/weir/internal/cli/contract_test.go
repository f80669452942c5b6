package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"weir.dev/weir/pkg/contract"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/weir/internal/control"
	"weir.dev/weir/services/weir/internal/explain"
	"weir.dev/weir/services/weir/verify"
)

var contractDir = filepath.Join("..", "..", "..", "..", "schemas")

func loadContracts(t *testing.T) *contract.Schemas {
	t.Helper()
	s, err := contract.Load(contractDir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answers are the kinds of answers with the type of their data.
func answers() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Answer":       reflect.TypeFor[control.Asked](),
		"Application":  reflect.TypeFor[control.Application](),
		"Audit":        reflect.TypeFor[control.Audit](),
		"Bundle":       reflect.TypeFor[bundled](),
		"BusCommands":  reflect.TypeFor[[]hint](),
		"Checkup":      reflect.TypeFor[checkup](),
		"Created":      reflect.TypeFor[created](),
		"Discovery":    reflect.TypeFor[[]discovery](),
		"Event":        reflect.TypeFor[job.Notice](),
		"Explanation":  reflect.TypeFor[explain.Explanation](),
		"EpochList":    reflect.TypeFor[[]epochLine](),
		"Grants":       reflect.TypeFor[[]grant](),
		"Job":          reflect.TypeFor[described](),
		"JobList":      reflect.TypeFor[[]job.Head](),
		"Letter":       reflect.TypeFor[pkgsink.Letter](),
		"LetterList":   reflect.TypeFor[[]control.Letter](),
		"LettersDone":  reflect.TypeFor[control.Touched](),
		"Manifest":     reflect.TypeFor[epoch.Manifest](),
		"Status":       reflect.TypeFor[control.Status](),
		"StatusList":   reflect.TypeFor[[]control.Status](),
		"Submission":   reflect.TypeFor[control.Submission](),
		"Validation":   reflect.TypeFor[validated](),
		"Verification": reflect.TypeFor[verify.Report](),
		"Version":      reflect.TypeFor[version](),
	}
}

func TestAnswersAreAsTheirSchemaSays(t *testing.T) {
	t.Parallel()
	schemas := loadContracts(t)
	for kind, typ := range answers() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if err := schemas.Match("answer#/$defs/data"+kind, typ); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGoldenAnswers reads answers that were once printed: each decodes, prints again in the same bytes and validates.
func TestGoldenAnswers(t *testing.T) {
	t.Parallel()
	schemas := loadContracts(t)
	seen := make(map[string]bool)
	files, err := filepath.Glob(filepath.Join(contractDir, "testdata", "answer", "v1", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		golden, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas.Validate("answer", golden); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		var in struct {
			Kind  string
			Data  json.RawMessage
			Error *fault.Error
		}
		if err := json.Unmarshal(golden, &in); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		seen[in.Kind] = true
		out := answer{APIVersion: apiVersion, Kind: in.Kind, Error: in.Error}
		if in.Kind != "Error" {
			v := reflect.New(answers()[in.Kind])
			if err := json.Unmarshal(in.Data, v.Interface()); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			out.Data = v.Interface()
		}
		var got bytes.Buffer
		if err := (output{w: &got}).encode(out); err != nil {
			t.Fatal(err)
		}
		if got.String() != string(golden) {
			t.Errorf("%s: prints as\n%s", f, got.String())
		}
	}
	for kind := range answers() {
		if !seen[kind] {
			t.Errorf("no golden answer of kind %s", kind)
		}
	}
}
