package halves

import "weir.dev/weir/pkg/report"

// logSplit is how reports call the log.
const logSplit = "log"

// Splits is which split a reader is at, for its reports. The zero value is of a reader without any.
type Splits struct {
	active string
	log    bool
}

// Begin says that a split is being read; until it has ended the log waits behind it.
func (s *Splits) Begin(id string) { s.active = id }

// End says that a split has been read. One that is not the newest changes nothing.
func (s *Splits) End(id string) {
	switch {
	case s.active != id:
	case s.log:
		s.active = logSplit
	default:
		s.active = ""
	}
}

// Follow says that the log was given to the reader.
func (s *Splits) Follow() { s.active, s.log = logSplit, true }

// Following reports whether it was.
func (s *Splits) Following() bool { return s.log }

// Active is the split being read, for a report.
func (s *Splits) Active() report.Value[string] {
	if s.active == "" {
		return report.Value[string]{}
	}
	return report.ExactOf(s.active)
}

// Idle reports whether nothing is being read.
func (s *Splits) Idle() bool { return s.active == "" }
