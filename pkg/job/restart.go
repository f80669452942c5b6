package job

import (
	"slices"
	"time"
)

// budgetOf is how many recoveries of a kind the window allows.
func budgetOf(k RestartKind, limit int) (budget int, limited bool) {
	switch k {
	case RestartFailure, RestartStall:
		return limit, true
	case RestartLoss:
		return limit * lossBudget, true
	case RestartFree, RestartAway:
	}
	return 0, false
}

func maxRestarts(limit int) int { return limit*lossBudget + 16 }

// pause is how long the attempt waits: it doubles with each restart that came without a durable epoch in between, and is
// spread by the roll. A lost node or stream is replaced at once the first time; a failure of its own waits. Nobody tells when a source
// is back, so whoever waits for one finds out late by no more than a small part of the time that it was away.
func (s *State) pause(restarts []Restart, roll float64) time.Duration {
	last := restarts[len(restarts)-1]
	n := 0
	for i := len(restarts) - 1; i >= 0 && restarts[i].Durable == last.Durable; i-- {
		n++
	}
	if last.Kind != RestartFailure {
		n--
	}
	if n == 0 {
		return 0
	}
	d := min(s.settings().Backoff<<min(n-1, 16), maxBackoff)
	if last.Kind == RestartAway {
		d = min(d, max(awayBackoff, away(restarts)/awayShare))
	}
	return time.Duration(float64(d) * (0.5 + roll/2))
}

// away is for how long the source could not be reached when the last of the restarts came.
func away(restarts []Restart) time.Duration {
	last := restarts[len(restarts)-1]
	since := last.At
	for _, r := range slices.Backward(restarts) {
		if r.Kind != RestartAway || r.Durable != last.Durable {
			break
		}
		since = r.At
	}
	return last.At.Sub(since)
}
