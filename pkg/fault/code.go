package fault

import (
	"slices"
	"strings"
	"sync"
)

// Code is the stable name of a situation: WEIR-<AREA>-<NNN>. Codes are declared in this package only.
type Code string

// Entry is one row of the table.
type Entry struct {
	Code   Code
	Name   string // the word used as a reason in status and events: LEDGER_AHEAD
	Class  Class
	Exit   int    // exit code of a command that ends with it
	Title  string // what is wrong, lower case, no full stop
	Remedy string // what to do; <name> is filled by New
	// Away says that the other end cannot be reached and nothing else is known to be wrong: it may be back at any moment.
	Away bool
}

// Area returns the middle part of the code: PG of WEIR-PG-001.
func (c Code) Area() string {
	parts := strings.Split(string(c), "-")
	if len(parts) != 3 {
		return ""
	}
	return parts[1]
}

// Table returns every code, sorted. The slice is the caller's.
func Table() []Entry {
	// One line per area; the rows are in codes_<area>.go.
	table := slices.Concat(
		apiCodes(),
		appCodes(),
		busCodes(),
		cliCodes(),
		confCodes(),
		jobCodes(),
		myCodes(),
		pgCodes(),
		regCodes(),
		sinkCodes(),
		specCodes(),
		srcCodes(),
	)
	slices.SortFunc(table, func(a, b Entry) int { return strings.Compare(string(a.Code), string(b.Code)) })
	return table
}

// index is computed once from constants and only read afterwards.
var index = sync.OnceValue(func() map[Code]Entry {
	m := make(map[Code]Entry)
	for _, e := range Table() {
		m[e.Code] = e
	}
	return m
})

// Lookup returns the row of a code. An unknown code gives the zero Entry, whose class is Bug.
func Lookup(code Code) (Entry, bool) {
	e, ok := index()[code]
	return e, ok
}
