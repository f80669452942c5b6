package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/fault"
)

type process struct {
	HTTP    string   `yaml:"http"`
	Level   string   `yaml:"level" enum:"debug,info"`
	Lease   Duration `yaml:"lease" min:"1s"`
	Stage   stage    `yaml:"stage"`
	Creds   Secret   `yaml:"creds"`
	Roles   []string `yaml:"roles"`
	Verbose bool     `yaml:"verbose"`
	Ratio   float64  `yaml:"ratio"`
	Workers uint8    `yaml:"workers"`
	Note    *string  `yaml:"note"`

	hidden int
}

type stage struct {
	Bytes Bytes `yaml:"bytes"`
	Parts int   `yaml:"parts" max:"9"`
}

func (p *process) Validate() []fault.Problem {
	if p.Stage.Parts == 7 {
		return []fault.Problem{{Path: "stage.parts", What: "seven is not allowed"}}
	}
	return nil
}

func defaults() process {
	return process{HTTP: "127.0.0.1:1", Level: "info", Lease: 3e9, Stage: stage{Bytes: 1 << 20, Parts: 2}, hidden: 1}
}

func TestLoadPrecedence(t *testing.T) {
	c := defaults()
	err := Load(Input{Service: "cdc-postgres", Data: []byte("level: debug\nstage: {parts: 3}\nroles: [a]\n"), Environ: []string{
		"PATH=/bin", "WEIR_CDC_POSTGRES_STAGE_PARTS=4", "WEIR_CDC_POSTGRES_ROLES=x, y", "WEIR_CDC_POSTGRES_CREDS=s3", "WEIR_CDC_POSTGRES_LEASE=5s",
		"WEIR_CDC_POSTGRES_VERBOSE=true", "WEIR_CDC_POSTGRES_RATIO=0.5", "WEIR_CDC_POSTGRES_HTTP=8080", "WEIR_CDC_POSTGRES_WORKERS=200",
	}}, &c)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Level, want.Stage.Parts, want.Roles, want.Creds, want.Lease = "debug", 4, []string{"x", "y"}, NewSecret("s3"), 5e9
	want.Verbose, want.Ratio, want.HTTP, want.Workers = true, 0.5, "8080", 200
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestLoadProblems(t *testing.T) {
	tests := []struct {
		name, file string
		env        []string
		code       fault.Code
		want       []string
	}{
		{"file", "levle: debug\nlease: 1ms\nstage: {parts: 12}\nworkers: 256\n", nil, fault.ConfInvalid, []string{
			`1:1 levle: key "levle" is not known; allowed: http, level, lease, stage, creds, roles, verbose, ratio, workers, note; did you mean "level"?`,
			"2:8 lease: the value must be at least 1s",
			"3:16 stage.parts: the value must be at most 9",
			"4:10 workers: the number is out of range",
		}},
		{"misspelt variable", "", []string{"WEIR_SINK_LEVLE=info"}, fault.ConfUnknownEnv, []string{
			`WEIR_SINK_LEVLE: the variable names no setting; did you mean "WEIR_SINK_LEVEL"?`,
		}},
		{"unknown service", "", []string{"WEIR_SNK_LEVEL=info"}, fault.ConfUnknownEnv, []string{
			`WEIR_SNK_LEVEL: the variable names no setting; did you mean "WEIR_SINK_LEVEL"?`,
		}},
		{"value of a variable", "", []string{"WEIR_SINK_LEASE=3"}, fault.ConfInvalid, []string{
			"WEIR_SINK_LEASE: a duration needs a unit: 500ms, 1s, 2m",
		}},
		{"rule between fields", "stage: {parts: 7}", nil, fault.ConfInvalid, []string{"stage.parts: seven is not allowed"}},
		{"empty file", "\n", nil, fault.ConfInvalid, []string{"1:1 the text is empty"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := defaults()
			var data []byte
			if tt.file != "" {
				data = []byte(tt.file)
			}
			err := Load(Input{Service: "sink", Others: []string{"sink", "coordinator"}, File: "c.yaml", Data: data, Environ: tt.env}, &c)
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Code != tt.code {
				t.Fatalf("got %v", err)
			}
			var got []string
			for _, p := range e.Problems {
				got = append(got, p.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestVariablesOfOtherServicesAreLeftAlone(t *testing.T) {
	c := defaults()
	if err := Load(Input{Service: "sink", Others: []string{"sink", "cdc-postgres"}, Environ: []string{"WEIR_CDC_POSTGRES_ANYTHING=1"}}, &c); err != nil {
		t.Error(err)
	}
}

type more struct {
	Extra int `yaml:"extra"`
}

func TestTwoTargetsShareOneFile(t *testing.T) {
	c, m := defaults(), more{}
	if err := Load(Input{Service: "sink", Data: []byte("extra: 1\nlevel: debug\n"), Environ: []string{"WEIR_SINK_EXTRA=2"}}, &c, &m); err != nil {
		t.Fatal(err)
	}
	if c.Level != "debug" || m.Extra != 2 {
		t.Errorf("got %+v %+v", c, m)
	}
	if err := Load(Input{Service: "sink", Data: []byte("extra: 1\n")}, &c); err == nil {
		t.Error("a key of no target was accepted")
	}
}

func TestEnvNames(t *testing.T) {
	c := defaults()
	want := []string{
		"WEIR_CDC_POSTGRES_CREDS", "WEIR_CDC_POSTGRES_HTTP", "WEIR_CDC_POSTGRES_LEASE", "WEIR_CDC_POSTGRES_LEVEL",
		"WEIR_CDC_POSTGRES_NOTE", "WEIR_CDC_POSTGRES_RATIO", "WEIR_CDC_POSTGRES_ROLES", "WEIR_CDC_POSTGRES_STAGE_BYTES",
		"WEIR_CDC_POSTGRES_STAGE_PARTS", "WEIR_CDC_POSTGRES_VERBOSE", "WEIR_CDC_POSTGRES_WORKERS",
	}
	if got := EnvNames("cdc-postgres", &c); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// C4, through both printed forms.
func TestEncodeDecode(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`[ -~éü\n\t]{1,12}`), rapid.SampledFrom([]string{
		"true", "no", "null", "~", "1", "0x1f", "1e3", "1_0", "-", "#", "a: b", "a #b", "- a", "''", `"`, "&a", "*a", "!a", "|", ">", "%", "@", "{", "[", "1:2", "01", "=", "<<", ".inf",
	}))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Filter(func(s string) bool { return !strings.Contains(s, "${") })
		c := process{
			HTTP:  s.Draw(t, "http"),
			Level: rapid.SampledFrom([]string{"debug", "info"}).Draw(t, "level"),
			Lease: Duration(rapid.Int64Range(1e9, 1e15).Draw(t, "lease")),
			Stage: stage{Bytes: Bytes(rapid.Int64Min(0).Draw(t, "bytes")), Parts: rapid.IntRange(-5, 9).Draw(t, "parts")},
			Creds: NewSecret(s.Draw(t, "creds")),
			Roles: rapid.SliceOfN(s, 1, 3).Draw(t, "roles"),
			Ratio: rapid.Float64().Draw(t, "ratio"), Workers: rapid.Uint8().Draw(t, "workers"),
			Verbose: rapid.Bool().Draw(t, "verbose"),
		}
		n := Encode(c, Keep)
		for _, form := range []string{string(n.JSON()), n.YAML()} {
			var back process
			if err := Load(Input{Data: []byte(form)}, &back); err != nil && c.Stage.Parts != 7 {
				t.Fatalf("%v\n%s", err, form)
			}
			if !reflect.DeepEqual(c, back) {
				t.Fatalf("got  %+v\nwant %+v\n%s", back, c, form)
			}
		}
	})
}

func TestDecodeKinds(t *testing.T) {
	for text, want := range map[string]string{
		"http: [a]":     "1:7 http: this is a list; a text is expected",
		"http: ''":      "1:7 http: the text is empty",
		"http: 1":       "1:7 http: this is a whole number; a text is expected: put it in quotes",
		"http:":         "1:1 http: the key has no value",
		"verbose: yes":  "1:10 verbose: this is a text; true or false is expected",
		"ratio: high":   "1:8 ratio: this is a text; a number is expected",
		"workers: 1.5":  "1:10 workers: this is a number; a whole number is expected",
		"workers: -1":   "1:10 workers: the number is out of range",
		"roles: a":      "1:8 roles: this is a text; a list is expected: [...]",
		"roles: [a, ~]": "1:12 roles[1]: the element is empty",
		"stage: 1":      "1:8 stage: this is a whole number; a mapping is expected",
		"creds: {a: 1}": "1:8 creds: this is a mapping; a text is expected",
		"creds: ${a":    "1:8 creds: the reference is malformed; write ${VAR}, ${VAR:-default} or ${file:/path}, and $${ for a literal ${",
		"a: {<<: {}}":   `1:1 a: key "a" is not known`,
		"[a]: b":        "1:4 this is not YAML",
		"? a\n: b":      "1:1 a key must be a plain word",
	} {
		c := defaults()
		err := Load(Input{Data: []byte(text)}, &c)
		e, ok := errors.AsType[*fault.Error](err)
		if !ok {
			t.Errorf("%s: accepted", text)
			continue
		}
		if !slices.ContainsFunc(e.Problems, func(p fault.Problem) bool { return strings.HasPrefix(p.String(), want) }) {
			t.Errorf("%s:\n got %v\nwant %s", text, e.Problems, want)
		}
	}
}

func TestParseBounds(t *testing.T) {
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[", 5000), "braces": strings.Repeat("{a: ", 500), "dashes": strings.Repeat("- ", 500),
		"long": strings.Repeat("a", maxText+1), "lines": "a:\n" + nest(100),
	} {
		if _, problems := Parse([]byte(text)); len(problems) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
}

func nest(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: [1, {b: 'c'}]", "- |\n  x\n", "a: &b !c *d", "\"\\u0041\": ~", "? a\n: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, problems := Parse(data)
		if n == nil && len(problems) == 0 {
			t.Fatal("neither a node nor a problem")
		}
	})
}
