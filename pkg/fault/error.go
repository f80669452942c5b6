package fault

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Error is an error for people: the same object in the CLI, the logs, the REST interface and the events. No field may
// carry a secret or the value of a row (F4).
type Error struct {
	Code   Code   // the stable name of the situation
	What   string // what is wrong, in general: the title of the code
	Where  string // where: a path of the job spec, a table, a subtask, a flag
	Why    string // what was seen this time
	Remedy string // what to do, with the names of this case filled in

	// Problems lists every finding when one input has several: a job spec, a config file.
	Problems []Problem

	// Err is the cause, for errors.Is and errors.As only. It is not part of the text and not of the JSON form, because
	// foreign errors may quote connection strings.
	Err error
}

// Problem is one finding in a text file. Line and Column count from 1; 0 means unknown.
type Problem struct {
	Line    int      `json:"line,omitempty"`
	Column  int      `json:"column,omitempty"`
	Path    string   `json:"path,omitempty"`       // sinks.warehouse.mode
	What    string   `json:"what"`                 // what is wrong
	Allowed []string `json:"allowed,omitempty"`    // what would be right
	Suggest string   `json:"didYouMean,omitempty"` // the nearest right spelling
}

// String returns "line:column path: what; allowed: a, b; did you mean "x"?".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		b.WriteString(strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + " ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.What)
	if len(p.Allowed) > 0 {
		b.WriteString("; allowed: " + strings.Join(p.Allowed, ", "))
	}
	if p.Suggest != "" {
		b.WriteString("; did you mean " + strconv.Quote(p.Suggest) + "?")
	}
	return b.String()
}

// New makes the error of a code. where and why are this case's; args are pairs of name and value which fill the
// placeholders of the remedy: New(PGSlotLost, "sources.db", why, "job", "shop") fills <job>; <where> is filled
// with where. Placeholders without a value stay as they are and read as a blank to fill in. A code that is not in the table gives an error of class
// Bug with an empty title.
func New(code Code, where, why string, args ...string) *Error {
	e, _ := Lookup(code)
	where = Scrub(where)
	return &Error{Code: code, What: e.Title, Where: where, Why: Scrub(why), Remedy: fill(e.Remedy, append(slices.Clip(args), "where", where))}
}

// Wrap is [New] with a cause. The cause stays reachable for errors.Is and errors.As; what of it people may read belongs
// into why. Wrap(nil, ...) is nil.
func Wrap(err error, code Code, where, why string, args ...string) error {
	if err == nil {
		return nil
	}
	e := New(code, where, why, args...)
	e.Err = err
	return e
}

func fill(remedy string, args []string) string {
	for i := 0; i+1 < len(args); i += 2 {
		if args[i+1] != "" {
			remedy = strings.ReplaceAll(remedy, "<"+args[i]+">", Scrub(args[i+1]))
		}
	}
	return remedy
}

// Error returns one line without the remedy: "WEIR-PG-001 what: why (where)".
func (e *Error) Error() string {
	s := string(e.Code)
	for _, part := range []string{e.What, e.Why} {
		if part != "" {
			s += ": " + part
		}
	}
	s = strings.Replace(s, ": ", " ", 1)
	if e.Where != "" {
		s += " (" + e.Where + ")"
	}
	for _, p := range e.Problems {
		s += "; " + p.String()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, fault.Permanent) true for an error whose code has that class.
func (e *Error) Is(target error) bool {
	c, ok := target.(Class)
	return ok && c == e.Class()
}

// Class returns the class of the code.
func (e *Error) Class() Class {
	entry, _ := Lookup(e.Code)
	return entry.Class
}

// Name returns the short word of the code, such as LEDGER_AHEAD, or "".
func (e *Error) Name() string {
	entry, _ := Lookup(e.Code)
	return entry.Name
}

// object is the JSON form of an Error.
type object struct {
	Code     Code      `json:"code"`
	Name     string    `json:"name,omitempty"`
	Class    Class     `json:"class"`
	What     string    `json:"what"`
	Where    string    `json:"where,omitempty"`
	Why      string    `json:"why,omitempty"`
	Remedy   string    `json:"remedy,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

// MarshalJSON writes code, name, class, what, where, why, remedy and problems. The cause is left out.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(object{
		Code: e.Code, Name: e.Name(), Class: e.Class(),
		What: e.What, Where: e.Where, Why: e.Why, Remedy: e.Remedy, Problems: e.Problems,
	})
}

// UnmarshalJSON reads the form of [Error.MarshalJSON]. Name and class are derived from the code, not read.
func (e *Error) UnmarshalJSON(data []byte) error {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	*e = Error{Code: o.Code, What: o.What, Where: o.Where, Why: o.Why, Remedy: o.Remedy, Problems: o.Problems}
	return nil
}

// Text returns the form for a terminal: several lines, remedy last, no trailing newline.
func (e *Error) Text() string {
	var b strings.Builder
	b.WriteString("error " + string(e.Code) + ": " + e.What)
	line := func(label, text string) {
		if text != "" {
			b.WriteString("\n  " + label + strings.ReplaceAll(text, "\n", "\n          "))
		}
	}
	line("where   ", e.Where)
	line("why     ", e.Why)
	for _, p := range e.Problems {
		b.WriteString("\n  - " + p.String())
	}
	line("remedy  ", e.Remedy)
	return b.String()
}

// Of returns the outermost *Error in the chain of err. An error without one comes back as INTERNAL, so that every
// interface always has an object to show.
func Of(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	e := New(AppInternal, "", err.Error())
	e.Err = err
	return e
}

// CodeOf returns the code of the outermost *Error in the chain, or "".
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}
