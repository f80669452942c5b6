package process

import (
	"strconv"
	"strings"
)

// Sum adds up every series of a metric in what a process says at /metrics, whatever its labels; zero when there is none yet.
func Sum(metrics, name string) float64 {
	var sum float64
	for line := range strings.Lines(metrics) {
		series, value, found := strings.Cut(strings.TrimSpace(line), " ")
		if before, _, labelled := strings.Cut(series, "{"); labelled {
			// A label's value may hold spaces.
			series, value, found = strings.Cut(strings.TrimSpace(line), "} ")
			series = before + series[len(series):]
		}
		if !found || series != name {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum += v
		}
	}
	return sum
}
