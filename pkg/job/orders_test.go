//go:build !race

package job

import "testing"

// Faults are walked over three epochs where that stays below 30,000 worlds. With a death, a lost stream or a drain there it
// is 50,000 to more than 150,000, and a minute more; two epochs already hold every pair of an epoch before the fault and
// one after it. A walk is one goroutine: under the race detector it would take ten times as long and find nothing.
func TestWalkEveryOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		b     budget
		reach []string
	}{
		{"every effect apart", budget{ticks: 1, epochs: 2, fences: 1}, []string{"RUNNING", "durable 2"}},
		{"three epochs", budget{ticks: 2, eager: true, epochs: 3, fences: 1}, []string{"durable 3"}},
		{"facts again", budget{ticks: 1, repeat: true, eager: true, epochs: 2, fences: 1}, []string{"durable 2"}},
		{"late heads", budget{ticks: 2, lag: true, eager: true, epochs: 3, fences: 1}, []string{"durable 3"}},
		{"drain", budget{drain: true, eager: true, epochs: 2, fences: 1}, []string{"FINISHED"}},
		{"cancel", budget{cancel: true, eager: true, epochs: 1, fences: 1}, []string{"CANCELLED"}},
		{"a spec is applied", budget{apply: true, eager: true, epochs: 2, fences: 2}, []string{"APPLY", "durable 2"}},
		{"a spec is applied, unsure writes", budget{apply: true, unsure: 1, eager: true, epochs: 1, fences: 2}, []string{"APPLY", "durable 1"}},
		{"suspend and resume", budget{suspend: true, resume: true, eager: true, epochs: 2, fences: 2}, []string{"SUSPENDED", "RESUMED", "durable 2"}},
		{"suspend, unsure writes", budget{suspend: true, resume: true, unsure: 1, eager: true, epochs: 1, fences: 2}, []string{"SUSPENDED", "RESUMED"}},
		{"savepoint", budget{savepoint: true, eager: true, epochs: 2, fences: 1}, []string{"durable 2", "savepoint"}},
		{"rewind", budget{suspend: true, rewind: true, eager: true, epochs: 3, fences: 2}, []string{"RESTORED", "durable 3"}},
		{"unsure writes", budget{ticks: 2, unsure: 1, eager: true, epochs: 3, fences: 1}, []string{"durable 3"}},
		{"a leader dies", budget{takeovers: 1, eager: true, epochs: 1, fences: 1}, []string{"durable 1"}},
		{"a process dies", budget{crashes: 1, eager: true, epochs: 2, fences: 2}, []string{"durable 2"}},
		{"an epoch is declined", budget{ticks: 2, declines: 1, eager: true, epochs: 3, fences: 1}, []string{"durable 3"}},
		{"rows are lost", budget{ticks: 2, losses: 1, eager: true, epochs: 3, fences: 2}, []string{"WEIR-JOB-008", "durable 3"}},
		{"a process joins", budget{ticks: 1, joins: 1, eager: true, epochs: 2, fences: 2}, []string{"REBALANCE", "durable 2"}},
		{"the stream is lost", budget{deletes: 1, eager: true, epochs: 2, fences: 2}, []string{"WEIR-JOB-007", "durable 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			reached := walk(t, tt.b)
			for _, want := range tt.reach {
				if reached[want] == 0 {
					t.Errorf("no history reached %q", want)
				}
			}
		})
	}
}
