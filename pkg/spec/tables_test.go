package spec

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTablesMatch(t *testing.T) {
	tests := []struct {
		patterns, in, out string
	}{
		{"public.orders", "public.orders", "public.Orders public.orders2 Public.orders private.orders"},
		{"public.order_items", "public.order_items", "public.orderxitems"}, // S4: _ is a letter
		{"public.*", "public.a public.audit_log", "private.a"},
		{"public.* !public.audit_*", "public.a public.audit", "public.audit_ public.audit_log"},
		{"!public.audit_* public.*", "public.a", "public.audit_log"},
		{"*.orders", "public.orders x.orders", "public.order"},
		{"*.*", "a.b", ""},
		{"public.a*b*c", "public.abc public.axxbyyc public.abbc", "public.ac public.ab public.abcd"},
		{"public.a*a", "public.aa public.aba", "public.a"},
		{`public."a*b"`, "public.a*b", "public.axb"},
		{`"Odd"."T""x"`, `Odd.T"x`, `odd.T"x`},
		{"p*.t* !pub*.tmp", "public.t public.tmq px.tmp", "public.tmp x.t"},
	}
	for _, tt := range tests {
		var tables Tables
		for p := range strings.FieldsSeq(tt.patterns) {
			parsed, err := ParseTablePattern(p)
			if err != nil {
				t.Fatalf("%s: %v", p, err)
			}
			tables = append(tables, parsed)
		}
		check := func(names string, want bool) {
			for name := range strings.FieldsSeq(names) {
				schema, table, _ := strings.Cut(name, ".")
				if tables.Match(schema, table) != want {
					t.Errorf("%s: %s matches = %v, want %v", tt.patterns, name, !want, want)
				}
			}
		}
		check(tt.in, true)
		check(tt.out, false)
	}
}

func TestExact(t *testing.T) {
	p, err := ParseTablePattern(`public."My.Table"`)
	if err != nil {
		t.Fatal(err)
	}
	if schema, table, ok := p.Exact(); !ok || schema != "public" || table != "My.Table" {
		t.Errorf("got %s %s %v", schema, table, ok)
	}
	star, err := ParseTablePattern("public.a*")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := star.Exact(); ok {
		t.Error("a pattern with a star is exact")
	}
}

// S4: a quoted name matches itself and nothing else.
func TestQuotedNameMatchesItself(t *testing.T) {
	name := rapid.StringMatching(`[a-zA-Z*_."! é]{1,10}`)
	rapid.Check(t, func(t *rapid.T) {
		schema, table, other := name.Draw(t, "schema"), name.Draw(t, "table"), name.Draw(t, "other")
		quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
		p, err := ParseTablePattern(quoted(schema) + "." + quoted(table))
		if err != nil {
			t.Fatal(err)
		}
		if !p.Match(schema, table) || p.Match(schema, other) != (other == table) {
			t.Fatalf("%s: wrong match", p)
		}
	})
}

// The glob agrees with a match that tries everything.
func TestGlob(t *testing.T) {
	text := rapid.StringMatching(`[ab]{0,8}`)
	pattern := rapid.StringMatching(`[ab*]{1,6}`)
	var naive func(p, s string) bool
	naive = func(p, s string) bool {
		switch {
		case p == "":
			return s == ""
		case p[0] == '*':
			return naive(p[1:], s) || s != "" && naive(p, s[1:])
		default:
			return s != "" && p[0] == s[0] && naive(p[1:], s[1:])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p, s := pattern.Draw(t, "pattern"), text.Draw(t, "text")
		if got := glob(strings.Split(p, "*")).match(s); got != naive(p, s) {
			t.Fatalf("%q matches %q = %v", p, s, got)
		}
	})
}

func FuzzParseTablePattern(f *testing.F) {
	for _, s := range []string{"public.*", `"a""b".c`, `!x."`, "..", "!", `"a"b.c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseTablePattern(s)
		if err == nil && p.String() != s {
			t.Errorf("%q became %q", s, p)
		}
		if schema, table, ok := p.Exact(); err == nil && ok && !p.Match(schema, table) {
			t.Errorf("%q does not match its own name", s)
		}
	})
}
