package fault

import (
	"context"
	"errors"
)

// Class says what the code which sees an error must do. The zero value is [Bug], so that an error nobody thought about
// never retries in place and never drops a row (F1).
//
// A Class is itself an error: it serves as the sentinel of errors.Is and as the mark inside fmt.Errorf("...: %w").
type Class uint8 //nolint:errname // a class is a word first; fault.Transient reads as what it is

// The five classes.
//
//nolint:errname // see Class
const (
	// Bug fails the attempt; the job restarts from its last durable epoch. The default of the unclassified.
	Bug Class = iota
	// Transient is retried where it happened, with backoff, inside the deadline of the operation.
	Transient
	// Fenced means that another owner holds a higher token: stop at once, flush nothing.
	Fenced
	// Poison concerns one row which can never apply: it goes to the dead letters, or stops the job where there are none.
	Poison
	// Permanent fails the job until a person acts on the remedy.
	Permanent
)

// String returns the word used in docs/errors.md and in the JSON form.
func (c Class) String() string {
	switch c {
	case Bug:
		return "bug"
	case Transient:
		return "transient"
	case Fenced:
		return "fenced"
	case Poison:
		return "poison"
	case Permanent:
		return "permanent"
	}
	return "unknown"
}

// Error makes a Class usable as a sentinel: errors.Is(err, fault.Transient).
func (c Class) Error() string { return c.String() + " error" }

// MarshalText writes the word of [Class.String].
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the word of [Class.String]; any other text is an error.
func (c *Class) UnmarshalText(text []byte) error {
	for k := Bug; k <= Permanent; k++ {
		if k.String() == string(text) {
			*c = k
			return nil
		}
	}
	return errors.New("fault class: unknown word")
}

// marked is an error with an explicit class.
type marked struct {
	class Class
	err   error
}

func (m *marked) Error() string { return m.err.Error() }
func (m *marked) Unwrap() error { return m.err }

// Is reports whether the target is the mark's class; the chain below decides about any other target.
func (m *marked) Is(target error) bool {
	c, ok := target.(Class)
	return ok && c == m.class
}

// Mark gives err a class without changing its text. The outermost mark wins over marks and codes further in, so that a
// caller who knows more than the callee can decide again. Mark(c, nil) is nil.
func Mark(class Class, err error) error {
	if err == nil {
		return nil
	}
	return &marked{class: class, err: err}
}

// ClassOf returns the class of err. Walking from the outside inwards, the first explicit class decides: a mark, a bare
// [Class], or the class of an [Error]'s code. Of several errors joined at one level the gravest classified one decides,
// in the order Fenced, Permanent, Bug, Poison, Transient; members which carry no class have no vote.
//
// Without an explicit class, context.Canceled and context.DeadlineExceeded are Transient: neither says that anything is
// wrong with the data. A loop whose own context ended must leave by that context and report context.Cause, which carries
// the reason of a fenced stop. Everything else, including nil, is Bug.
func ClassOf(err error) Class {
	if c, ok := explicit(err); ok {
		return c
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Transient
	}
	return Bug
}

func explicit(err error) (Class, bool) {
	for err != nil {
		switch e := err.(type) { //nolint:errorlint // the walk itself visits every link
		case Class:
			return e, true
		case *marked:
			return e.class, true
		case *Error:
			return e.Class(), true
		}
		switch u := err.(type) { //nolint:errorlint // the walk itself visits every link
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			return gravest(u.Unwrap())
		default:
			return Bug, false
		}
	}
	return Bug, false
}

func gravest(errs []error) (Class, bool) {
	best, found := Bug, false
	for _, err := range errs {
		c, ok := explicit(err)
		if ok && (!found || gravity(c) > gravity(best)) {
			best, found = c, true
		}
	}
	return best, found
}

func gravity(c Class) int {
	switch c {
	case Fenced:
		return 4
	case Permanent:
		return 3
	case Bug:
		return 2
	case Poison:
		return 1
	case Transient:
		return 0
	}
	return 2
}
