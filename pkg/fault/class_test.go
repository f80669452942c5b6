package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestClassOf(t *testing.T) {
	plain := errors.New("plain")
	coded := New(PGWALLevel, "sources.db", "wal_level=replica") // permanent
	tests := []struct {
		name string
		err  error
		want Class
	}{
		{"nil", nil, Bug},
		{"unclassified", plain, Bug}, // F1
		{"bare class", Transient, Transient},
		{"class as mark in Errorf", fmt.Errorf("read: %w", Transient), Transient},
		{"mark", Mark(Poison, plain), Poison},
		{"wrapped mark", fmt.Errorf("apply: %w", Mark(Poison, plain)), Poison},
		{"outermost mark wins", Mark(Fenced, fmt.Errorf("x: %w", Mark(Transient, plain))), Fenced},
		{"code", coded, Permanent},
		{"mark over code", Mark(Transient, coded), Transient},
		{"code over mark", Wrap(Mark(Transient, plain), PGWALLevel, "", ""), Permanent},
		{"bug mark over transient", Mark(Bug, Transient), Bug},
		{"gravest of a join", errors.Join(Transient, Mark(Fenced, plain), Poison), Fenced},
		{"permanent before bug", errors.Join(Mark(Bug, plain), Permanent), Permanent},
		{"bug before poison", errors.Join(Poison, Mark(Bug, plain)), Bug},
		{"unclassified member has no vote", errors.Join(plain, Transient), Transient},
		{"join of unclassified", errors.Join(plain, plain), Bug},
		{"canceled", fmt.Errorf("read: %w", context.Canceled), Transient},
		{"deadline", context.DeadlineExceeded, Transient},
		{"mark over deadline", Mark(Permanent, context.DeadlineExceeded), Permanent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ClassOf(tt.err); got != tt.want {
				t.Fatalf("ClassOf = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestErrorsIsClass(t *testing.T) {
	cause := errors.New("cause")
	for _, err := range []error{
		Mark(Transient, cause),
		fmt.Errorf("x: %w", Transient),
		Wrap(cause, PGDisconnected, "", ""),
	} {
		if !errors.Is(err, Transient) || errors.Is(err, Permanent) {
			t.Errorf("%v: errors.Is disagrees", err)
		}
	}
	if !errors.Is(Mark(Transient, cause), cause) || !errors.Is(Wrap(cause, PGDisconnected, "", ""), cause) {
		t.Error("the cause is not reachable")
	}
	if Mark(Transient, nil) != nil || Wrap(nil, PGDisconnected, "", "") != nil {
		t.Error("no error became an error")
	}
}

func TestClassText(t *testing.T) {
	for c := Bug; c <= Permanent; c++ {
		text, _ := c.MarshalText()
		var back Class
		if err := back.UnmarshalText(text); err != nil || back != c {
			t.Errorf("%s: round trip gave %s, %v", c, back, err)
		}
	}
	var c Class
	if c.UnmarshalText([]byte("fatal")) == nil {
		t.Error("an unknown word was accepted")
	}
}
