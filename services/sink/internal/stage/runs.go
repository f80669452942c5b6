package stage

import "weir.dev/weir/pkg/rows"

// Runs are the rows that a writer holds until they become pieces, in order of each table's first row. The zero value holds
// none.
type Runs struct {
	open []*Run
	raw  int64
}

// Run is the rows of one table in one schema version.
type Run struct {
	Schema  *rows.Schema
	Batches []*rows.Batch
	// Raw is the size of the batches in memory.
	Raw int64
}

// Add puts a batch into the run of its table. A new schema version ends the run of the old one, which is taken out; nil when
// none was ended. Its rows come before those of b.
func (r *Runs) Add(b *rows.Batch) (into, ended *Run) {
	for _, o := range r.open {
		if o.Schema.Table() != b.Schema().Table() {
			continue
		}
		if o.Schema.Same(b.Schema()) {
			into = o
		} else {
			ended = r.Take(o)
		}
		break
	}
	if into == nil {
		into = &Run{Schema: b.Schema()}
		r.open = append(r.open, into)
	}
	n := SizeOf(b)
	into.Batches = append(into.Batches, b)
	into.Raw += n
	r.raw += n
	return into, ended
}

// Take takes a run out.
func (r *Runs) Take(run *Run) *Run {
	for i, o := range r.open {
		if o == run {
			r.open = append(r.open[:i], r.open[i+1:]...)
			r.raw -= run.Raw
			break
		}
	}
	return run
}

// TakeLargest takes the largest run out; there has to be one.
func (r *Runs) TakeLargest() *Run {
	largest := r.open[0]
	for _, o := range r.open {
		if o.Raw > largest.Raw {
			largest = o
		}
	}
	return r.Take(largest)
}

// TakeFirst takes out the run whose rows began first; nil when there is none.
func (r *Runs) TakeFirst() *Run {
	if len(r.open) == 0 {
		return nil
	}
	return r.Take(r.open[0])
}

// Raw is the size of all runs in memory.
func (r *Runs) Raw() int64 { return r.raw }
