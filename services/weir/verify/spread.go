package verify

import (
	"math"
	"slices"
)

// spread sums up; nil for no values. The percentiles are the nearest rank: with few values p95 is the largest.
func spread(values []float64) *Spread {
	if len(values) == 0 {
		return nil
	}
	v := slices.Sorted(slices.Values(values))
	rank := func(q float64) float64 { return v[max(int(math.Ceil(q*float64(len(v))))-1, 0)] }
	return &Spread{N: len(v), Median: rank(0.5), P95: rank(0.95), Max: v[len(v)-1]}
}

// classes sums the results up, in the order in which the classes ran.
func classes(specs []class, results []Result) []Class {
	var all []Class
	for _, c := range specs {
		var own []Result
		for _, r := range results {
			if r.Class == c.name {
				own = append(own, r)
			}
		}
		sum := summary(own)
		sum.Name, sum.Trigger, sum.Mode = c.name, c.trigger, c.mode
		all = append(all, sum)
	}
	return all
}

// summary counts runs and spreads their times.
func summary(results []Result) Class {
	var sum Class
	var detect, durable, reconciled []float64
	for _, r := range results {
		sum.Runs++
		if !r.Passed {
			sum.Failed++
		}
		for _, f := range r.Faults {
			detect = append(detect, given(f.Detect)...)
			durable = append(durable, given(f.Durable)...)
		}
		reconciled = append(reconciled, given(r.Reconciled)...)
	}
	sum.Detect, sum.Durable, sum.Reconciled = spread(detect), spread(durable), spread(reconciled)
	return sum
}

func given(v *float64) []float64 {
	if v == nil {
		return nil
	}
	return []float64{*v}
}
