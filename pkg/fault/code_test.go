package fault

import (
	"regexp"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	code := regexp.MustCompile(`^WEIR-[A-Z]{2,5}-[0-9]{3}$`)
	name := regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)
	codes, names := map[Code]bool{}, map[string]bool{}
	last := map[string]int{}
	for _, e := range Table() {
		if !code.MatchString(string(e.Code)) {
			t.Errorf("%s: malformed code", e.Code)
		}
		if !name.MatchString(e.Name) {
			t.Errorf("%s: malformed name %q", e.Code, e.Name)
		}
		if codes[e.Code] || names[e.Name] {
			t.Errorf("%s %s: not unique", e.Code, e.Name)
		}
		codes[e.Code], names[e.Name] = true, true
		if e.Title == "" || strings.HasSuffix(e.Title, ".") {
			t.Errorf("%s: title %q is empty or ends with a full stop", e.Code, e.Title)
		}
		if len(e.Remedy) < 10 {
			t.Errorf("%s: no remedy", e.Code)
		}
		switch e.Exit {
		case ExitInternal, ExitRequest, ExitEnvironment, ExitVerify, ExitTimeout, ExitInterrupt:
		default:
			t.Errorf("%s: exit code %d is not one of the contract", e.Code, e.Exit)
		}
		last[e.Code.Area()]++
	}
	// F2: numbers run without a gap, so that a removed row is noticed.
	for _, e := range Table() {
		n := 0
		for _, c := range e.Code[len(e.Code)-3:] {
			n = n*10 + int(c-'0')
		}
		if n < 1 || n > last[e.Code.Area()] {
			t.Errorf("%s: area %s has %d codes; numbers must run from 001 without a gap", e.Code, e.Code.Area(), last[e.Code.Area()])
		}
	}
}

func TestUnknownCodeIsABug(t *testing.T) {
	if e := New("WEIR-X-999", "", ""); e.Class() != Bug || ExitCode(e) != ExitInternal {
		t.Fatalf("got class %s, exit %d", e.Class(), ExitCode(e))
	}
}
