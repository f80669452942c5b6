package core

import "time"

// Quiet is the search for a moment in which nobody writes to a table that is read as a whole. The zero value has not begun.
type Quiet struct {
	began time.Time
	tries int
}

const (
	// quietNotice is after how long a search is told to people, quietLimit after how long it is given up.
	quietNotice = 2 * time.Second
	quietLimit  = 2 * time.Minute
	// quietPause bounds the pause between two tries, each of which takes some milliseconds of the server.
	quietPause = 100 * time.Millisecond
)

// Busy takes a try that met a writer, and says how long to wait before the next, whether the search has become long enough to be
// told, and whether it is over. roll, from 0 to 1, spreads the pauses, so that they do not keep step with a writer.
func (q *Quiet) Busy(now time.Time, roll float64) (pause time.Duration, tell, over bool) {
	if q.tries == 0 {
		q.began = now
	}
	q.tries++
	searched := now.Sub(q.began)
	pause = min(time.Duration(q.tries)*time.Millisecond, quietPause)
	return time.Duration(roll * float64(pause)), searched >= quietNotice, searched >= quietLimit
}

// Began is when the first try that met a writer was.
func (q *Quiet) Began() time.Time { return q.began }

// Tries is how many tries met a writer.
func (q *Quiet) Tries() int { return q.tries }
