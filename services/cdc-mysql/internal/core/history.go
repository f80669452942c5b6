package core

import (
	"fmt"

	"weir.dev/weir/pkg/position"
)

// History is what a server has of its log, as far as its family tells.
type History struct {
	// Logged is everything that the server ever logged, and Purged what of it it no longer has the log of.
	Logged, Purged Point
	// Files are those of a log without names for transactions, in their order; the place in each is its end.
	Files []position.BinlogPos
}

// Verdict is whether a log can be read on from a point.
type Verdict uint8

// The verdicts.
const (
	Readable Verdict = iota + 1
	// Lost log lies behind the point and is purged.
	Lost
	// Foreign is a server that never had, or has forgotten, what lies before the point.
	Foreign
)

// Oldest is the point before everything of which the server has the log.
func (h *History) Oldest() Point {
	if h.Purged.Family != position.MySQLBinlog || len(h.Files) == 0 {
		return h.Purged.Clone()
	}
	first := h.Files[0]
	first.Pos = logHeader
	return Point{Family: position.MySQLBinlog, Binlog: first}
}

// logHeader is how long a file of the log is before its first event.
const logHeader = 4

// Judge says whether the log behind a point is there, and for people what is missing otherwise.
func (h *History) Judge(at *Point) (Verdict, string) {
	if at.Family == position.MySQLBinlog {
		return h.judgeFiles(at.Binlog)
	}
	switch {
	case !h.Logged.Has(at):
		return Foreign, fmt.Sprintf("the job has read %s, the server has %s", at.names(), h.Logged.names())
	case at.Has(&h.Purged):
		return Readable, ""
	case at.Family == position.MySQLGTID:
		return Lost, fmt.Sprintf("transactions %s are purged, and the job has not read them", h.Purged.GTIDs.Minus(at.GTIDs))
	default:
		return Lost, fmt.Sprintf("the job has read up to %s, the server has purged its log up to %s", at.names(), h.Purged.names())
	}
}

func (h *History) judgeFiles(at position.BinlogPos) (Verdict, string) {
	if len(h.Files) == 0 || h.Files[0].Base != at.Base {
		return Foreign, fmt.Sprintf("the job has read up to %s, the server has no log of that series", at)
	}
	if at.Seq < h.Files[0].Seq {
		return Lost, fmt.Sprintf("the job has read up to %s, the oldest log of the server is %s", at, h.Files[0].File())
	}
	for _, f := range h.Files {
		if f.Seq == at.Seq && at.Pos <= f.Pos {
			return Readable, ""
		}
	}
	return Foreign, fmt.Sprintf("the job has read up to %s, the log of the server ends at %s", at, h.Files[len(h.Files)-1])
}

// names are the transactions before a point.
func (p *Point) names() string {
	if p.Family == position.MySQLGTID {
		return p.GTIDs.String()
	}
	return p.Maria.String()
}
