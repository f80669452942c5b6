package report

import (
	"fmt"
	"time"
)

// Retention is how long a source keeps the log that a reader has not read.
type Retention struct {
	// Bytes is the size at which the source gives the log up, Age the age; zero where it has no such bound. With neither it
	// keeps the log until it is full.
	Bytes int64         `json:"bytes,omitempty"`
	Age   time.Duration `json:"age,omitempty"`
	// Room is how many bytes may still be written before the log is lost by its size. Less than nothing: it goes at any moment.
	Room Value[int64] `json:"room"`
	// Growth is by how many bytes per second the log that is kept has grown lately; less than nothing when it shrinks. It has
	// no value until it was watched for a while.
	Growth Value[int64] `json:"growth"`
}

func (r *Retention) validate() error {
	switch {
	case r == nil:
		return nil
	case r.Bytes < 0 || r.Age < 0:
		return fmt.Errorf("log is kept up to %d bytes and %s", r.Bytes, r.Age)
	case r.Growth.Accuracy() == Exact:
		return fmt.Errorf("a rate is never exact")
	}
	if _, ok := r.Room.Get(); ok && r.Bytes == 0 {
		return fmt.Errorf("room without a bound")
	}
	return nil
}
