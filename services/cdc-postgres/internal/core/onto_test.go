package core

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// versionOf reads what columnsOf does; a type's spaces are written as underscores.
func versionOf(text string) Columns {
	list := columnsOf(text)
	for i := range list {
		list[i].Source = strings.ReplaceAll(list[i].Source, "_", " ")
	}
	return Columns{List: list}
}

func TestOntoTheColumnsOfTheCopy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from    []string // versions of the copy, oldest first
		to      string
		sent    string
		want    []int
		differs bool
	}{
		"added":                       {from: []string{"id:1 a:2"}, to: "id:1 a:2 b:3", sent: "id:1 a:2", want: []int{0, 1, Added}},
		"added, and the log is there": {from: []string{"id:1 a:2"}, to: "id:1 a:2 b:3", sent: "id:1 a:2 b:3", want: []int{0, 1, 2}},
		"dropped":                     {from: []string{"id:1 a:2 b:3"}, to: "id:1 b:3", sent: "id:1 a:2 b:3", want: []int{0, 2}},
		"renamed":                     {from: []string{"id:1 a:2"}, to: "id:1 z:2", sent: "id:1 a:2", want: []int{0, 1}},
		"names exchanged":             {from: []string{"id:1 a:2 b:3"}, to: "id:1 b:2 a:3", sent: "id:1 a:2 b:3", want: []int{0, 1, 2}},
		"names exchanged, behind":     {from: []string{"id:1 a:2 b:3"}, to: "id:1 b:2 a:3", sent: "id:1 b:2 a:3", want: []int{0, 1, 2}},
		"wider":                       {from: []string{"id:1 a:2"}, to: "id:1 a:2:bigint", sent: "id:1 a:2", want: []int{0, 1}},
		"between two chunks":          {from: []string{"id:1 a:2"}, to: "id:1 b:3 c:4", sent: "id:1 a:2 b:3", want: []int{0, 2, Added}},
		"two changes of the copy":     {from: []string{"id:1", "id:1 a:2"}, to: "id:1 b:3", sent: "id:1 a:2", want: []int{0, Added}},
		"another type under the name": {from: []string{"id:1 a:2"}, to: "id:1 a:3:text", sent: "id:1 a:2", want: []int{0, Added}},

		"the same again":         {from: []string{"id:1 a:2"}, to: "id:1 a:3", sent: "id:1 a:2", differs: true},
		"narrower":               {from: []string{"id:1 a:2:bigint"}, to: "id:1 a:2", sent: "id:1 a:2:bigint", differs: true},
		"digits that come later": {from: []string{"id:1 a:2:real"}, to: "id:1 a:2:double_precision", sent: "id:1 a:2:real", differs: true},
		"a name of neither":      {from: []string{"id:1 a:2"}, to: "id:1 z:2", sent: "id:1 m:2", differs: true},
		"one that is missing":    {from: []string{"id:1 a:2"}, to: "id:1 a:2 b:3", sent: "id:1", differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var from []Columns
			for _, text := range tt.from {
				from = append(from, versionOf(text))
			}
			got, err := versionOf(tt.to).Onto(versionOf(tt.sent).sent(), from...)
			if _, differs := errors.AsType[*DiffersError](err); differs != tt.differs || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v", got, err)
			}
			if err := versionOf(tt.to).Succeeds(from...); !tt.differs && err != nil {
				t.Errorf("a copy could not go on: %v", err)
			}
		})
	}
}

func TestMaskedUnderOneOfTheNames(t *testing.T) {
	t.Parallel()
	to := versionOf("id:1 z:2")
	to.List[1].Masked = true
	if _, err := to.Onto(versionOf("id:1 a:2").sent(), versionOf("id:1 a:2")); err == nil {
		t.Error("values that were not masked got into a column that is")
	}
}
