package preflight_test

import (
	"errors"
	"slices"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
)

func TestFailed(t *testing.T) {
	t.Parallel()
	coded := fault.New(fault.PGWALLevel, "sources.db", "wal_level is replica")
	f := preflight.Failed("sources.db", "wal_level", coded, nil)
	if f.Status != preflight.Error || f.Code != fault.PGWALLevel || f.Found != "wal_level is not logical: wal_level is replica" {
		t.Errorf("%+v", f)
	}
	if f.Remedy == nil || f.Remedy.Advice != coded.Remedy {
		t.Errorf("remedy %+v, want that of the code", f.Remedy)
	}
	own := &preflight.Remedy{SQL: []string{"SELECT 1;"}}
	if f := preflight.Failed("sources.db", "wal_level", coded, own); f.Remedy != own {
		t.Errorf("remedy %+v, want the check's own", f.Remedy)
	}
	if f := preflight.Failed("sources.db", "wal_level", errors.New("odd"), nil); f.Code != fault.AppInternal || f.Validate() != nil {
		t.Errorf("an error without a code: %+v, %v", f, f.Validate())
	}
}

func TestCountAndGroups(t *testing.T) {
	t.Parallel()
	all := []preflight.Finding{
		{Group: "b", Status: preflight.OK},
		{Group: "a", Status: preflight.Error},
		{Group: "b", Status: preflight.Error},
		{Group: "a", Status: preflight.Warning},
	}
	if n := preflight.Count(all, preflight.Error); n != 2 {
		t.Errorf("%d errors", n)
	}
	if g := preflight.Groups(all); !slices.Equal(g, []string{"b", "a"}) {
		t.Errorf("groups %v", g)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	bad := func(change func(*preflight.Finding)) preflight.Finding {
		f := preflight.Finding{
			Group: "sources.db", Check: "wal_level", Status: preflight.Error, Found: "wal_level is replica",
			Remedy: &preflight.Remedy{SQL: []string{"ALTER SYSTEM SET wal_level = logical;"}},
		}
		change(&f)
		return f
	}
	good := bad(func(*preflight.Finding) {})
	if err := good.Validate(); err != nil {
		t.Errorf("%+v: %v", good, err)
	}
	for name, f := range map[string]preflight.Finding{
		"no group":     bad(func(f *preflight.Finding) { f.Group = "" }),
		"nothing":      bad(func(f *preflight.Finding) { f.Found = "" }),
		"no remedy":    bad(func(f *preflight.Finding) { f.Remedy = nil }),
		"empty remedy": bad(func(f *preflight.Finding) { f.Remedy = &preflight.Remedy{Restart: true} }),
		"blank":        bad(func(f *preflight.Finding) { f.Remedy.SQL = []string{"DROP TABLE <table>;"} }),
		"no semicolon": bad(func(f *preflight.Finding) { f.Remedy.SQL = []string{"SELECT 1"} }),
	} {
		if f.Validate() == nil {
			t.Errorf("%s: %+v is taken", name, f)
		}
	}
}
