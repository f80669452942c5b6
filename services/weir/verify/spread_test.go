package verify

import (
	"reflect"
	"testing"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for _, tc := range []struct {
		name   string
		values []float64
		want   *Spread
	}{
		{"nothing", nil, nil},
		{"one", []float64{3}, &Spread{1, 3, 3, 3}},
		{"two", []float64{4, 2}, &Spread{2, 2, 4, 4}},
		{"five", []float64{5, 1, 4, 2, 3}, &Spread{5, 3, 5, 5}},
		{"a hundred", hundred, &Spread{100, 50, 95, 100}},
	} {
		if got := spread(tc.values); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestClassesSumUp(t *testing.T) {
	t.Parallel()
	f := func(v float64) *float64 { return &v }
	got := classes([]class{{name: "a", trigger: "when", mode: byItself}, {name: "b"}}, []Result{
		{Class: "a", Passed: true, Reconciled: f(9), Faults: []Fault{{Durable: f(1), Detect: f(0.5)}, {Durable: f(3)}}},
		{Class: "a", Faults: []Fault{{Durable: f(2)}}},
		{Class: "c", Passed: true, Reconciled: f(1)},
	})
	want := []Class{
		{
			Name: "a", Trigger: "when", Mode: byItself, Runs: 2, Failed: 1,
			Detect: &Spread{1, 0.5, 0.5, 0.5}, Durable: &Spread{3, 2, 3, 3}, Reconciled: &Spread{1, 9, 9, 9},
		},
		{Name: "b"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
