package halves

import (
	"time"

	"weir.dev/weir/pkg/report"
)

// How long back a pace looks, and how near to one another the counts are that it keeps.
const (
	paceSpan = 10 * time.Second
	paceStep = time.Second
)

// Pace is how fast something is counted. The zero Pace is ready; one is never changed, so that others may look at it.
type Pace struct {
	seen []counted // a step apart at least
	last counted
}

type counted struct {
	at time.Time
	n  uint64
}

// See returns the pace that has seen a count at a moment. A count that is less than the one before begins anew.
func (p Pace) See(now time.Time, n uint64) Pace {
	next := Pace{seen: p.seen, last: counted{now, n}}
	switch k := len(p.seen); {
	case k == 0 || n < p.last.n:
		next.seen = []counted{next.last}
	case now.Sub(p.seen[k-1].at) >= paceStep:
		next.seen = append(p.seen[p.base(now):k:k], next.last)
	}
	return next
}

// base is the newest count kept that is as old as a pace looks back, or the oldest there is.
func (p Pace) base(now time.Time) int {
	i := 0
	for i+1 < len(p.seen) && now.Sub(p.seen[i+1].at) >= paceSpan {
		i++
	}
	return i
}

// Rate is by how much the count has grown in a second, lately; no value until it was watched for a while.
func (p Pace) Rate(now time.Time) report.Value[uint64] {
	if len(p.seen) == 0 || now.Sub(p.seen[0].at) < paceStep {
		return report.Value[uint64]{}
	}
	from := p.seen[p.base(now)]
	if now.Sub(p.last.at) >= paceSpan {
		from = p.last
	}
	return report.BestEffortOf(uint64(float64(p.last.n-from.n)/now.Sub(from.at).Seconds() + 0.5))
}
