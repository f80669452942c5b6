package harness

import (
	"time"

	"weir.dev/weir/services/weir/verify/process"
)

// CPU is the time that the server and all its processes have used since it was started, also those that have ended. Linux
// only.
func (p *Postgres) CPU() (time.Duration, error) {
	total, err := process.TimeOf(p.proc.PID(), true)
	if err != nil {
		return 0, err
	}
	for _, pid := range children(p.proc.PID()) {
		if one, err := process.TimeOf(pid, false); err == nil { // one that has just ended counts from now on among those waited for
			total += one
		}
	}
	return total, nil
}
