package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"weir.dev/weir/pkg/fault"
)

// C3: whatever prints a secret prints ***.
func TestSecretCanary(t *testing.T) {
	const canary = "canary-5f1d"
	type holder struct {
		S Secret
		P *Secret
		M map[string]Secret
	}
	s := NewSecret("postgres://u:" + canary + "@h/d")
	h := holder{S: s, P: &s, M: map[string]Secret{"x": s}}
	var forms []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%T"} {
		forms = append(forms, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, h))
	}
	j, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var text, object strings.Builder
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "secret", s, "holder", h, "pointer", &s)
	slog.New(slog.NewJSONHandler(&object, nil)).Info("x", "secret", s, "holder", h, "pointer", &s)
	forms = append(forms, string(j), string(y), text.String(), object.String(), s.String(), s.GoString(), s.Redacted(), Encode(h.S, Redact).Text)
	hex := fmt.Sprintf("%x", canary)
	for _, form := range forms {
		if strings.Contains(form, canary) || strings.Contains(strings.ToLower(form), hex) {
			t.Errorf("the secret is shown: %s", form)
		}
	}
	if !strings.Contains(string(j), `"S":"***"`) || !strings.Contains(object.String(), `"secret":"***"`) {
		t.Errorf("it is not shown as ***: %s %s", j, object.String())
	}
	if !strings.Contains(s.Raw(), canary) {
		t.Error("the text is lost") // or this test proves nothing
	}
}

func TestResolve(t *testing.T) {
	l := Lookup{
		Env: func(n string) (string, bool) {
			v, ok := map[string]string{"A": "one", "EMPTY": "", "NESTED": "${A}"}[n]
			return v, ok
		},
		File: func(p string) ([]byte, error) {
			if p == "/run/secrets/x" {
				return []byte("two\r\n"), nil
			}
			return nil, os.ErrNotExist
		},
	}
	for raw, want := range map[string]string{
		"plain":                  "plain",
		"${A}":                   "one",
		"<${A}-${A}>":            "<one-one>",
		"${B:-three}":            "three",
		"${EMPTY:-three}":        "three",
		"${A:-three}":            "one",
		"${B:-}":                 "",
		"${file:/run/secrets/x}": "two",
		"$${A}":                  "${A}",
		"$A $$ 5$":               "$A $$ 5$",
		"${NESTED}":              "${A}", // values are not expanded again
	} {
		if got, err := NewSecret(raw).Resolve(l); err != nil || got != want {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
	for raw, code := range map[string]fault.Code{
		"${B}": fault.ConfUnresolved, "${EMPTY}": fault.ConfUnresolved, "${file:/nope}": fault.ConfSecretFile,
		"${A": fault.ConfBadReference, "${}": fault.ConfBadReference, "${1A}": fault.ConfBadReference, "${file:x}": fault.ConfBadReference,
	} {
		_, err := NewText(raw).Resolve(l)
		if fault.CodeOf(err) != code {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := NewText("${file:/nope}").Resolve(l); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}

func TestOS(t *testing.T) {
	file := t.TempDir() + "/pw"
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONFIG_TEST_A", "from-env")
	got, err := OS().Resolve("${CONFIG_TEST_A} ${file:" + file + "}")
	if err != nil || got != "from-env from-file" {
		t.Errorf("%q, %v", got, err)
	}
}
