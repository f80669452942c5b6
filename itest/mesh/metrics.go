package mesh

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metrics returns what a member says at /metrics.
func (m *Member) Metrics(ctx context.Context, tb testing.TB) string {
	tb.Helper()
	text, err := get(ctx, m.HTTP+"/metrics")
	if err != nil {
		tb.Fatalf("metrics of %s: %v", m.Node, err)
	}
	return text
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return string(body), nil
}

// Sum adds up every series of a metric in a member's /metrics, whatever its labels; zero when there is none yet.
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
