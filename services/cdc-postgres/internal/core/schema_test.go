package core

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// columnsOf reads "id:1 a:2": names with numbers; the type is integer unless another follows a second colon.
func columnsOf(text string) []Column {
	var list []Column
	for i, word := range strings.Fields(text) {
		c := Column{ID: i + 1, Source: "integer"}
		parts := strings.Split(word, ":")
		c.Name = parts[0]
		c.Number, _ = strconv.Atoi(parts[1])
		if len(parts) > 2 {
			c.Source = parts[2]
		}
		list = append(list, c)
	}
	return list
}

func newest(text string) int {
	list := columnsOf(text)
	return list[len(list)-1].Number
}

func sentOf(list []Column) []Sent {
	var sent []Sent
	for _, c := range list {
		sent = append(sent, Sent{Name: c.Name, Source: c.Source})
	}
	return sent
}

func liveOf(list []Column, width int) *Live {
	l := &Live{Width: width, Storage: 1}
	for _, c := range list {
		l.Columns = append(l.Columns, LiveColumn{Number: c.Number, Name: c.Name, Fill: c.Fill})
	}
	return l
}

func TestFollowTellsRenamesFromNewColumns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		last, sent string // the numbers of sent are what has to be found
		live       string
		width      int
		differs    bool
	}{
		"nothing":                          {last: "id:1 a:2", sent: "id:1 a:2", live: "id:1 a:2", width: 2},
		"a gap from the start":             {last: "id:1 a:4", sent: "id:1 a:4 b:5", live: "id:1 a:4 b:5", width: 5},
		"added":                            {last: "id:1 a:2", sent: "id:1 a:2 b:3", live: "id:1 a:2 b:3", width: 3},
		"dropped":                          {last: "id:1 a:2 b:3", sent: "id:1 b:3", live: "id:1 b:3", width: 3},
		"renamed":                          {last: "id:1 a:2", sent: "id:1 b:2", live: "id:1 b:2", width: 2},
		"swapped":                          {last: "id:1 a:2 b:3", sent: "id:1 b:2 a:3", live: "id:1 b:2 a:3", width: 3},
		"dropped and added":                {last: "id:1 a:2", sent: "id:1 b:3", live: "id:1 b:3", width: 3},
		"dropped and added, other type":    {last: "id:1 a:2", sent: "id:1 a:3:text", live: "id:1 a:3:text", width: 3},
		"dropped and added, same again":    {last: "id:1 a:2", sent: "id:1 a:3", live: "id:1 a:3", width: 3, differs: true},
		"before a drop that is done":       {last: "id:1 a:2", sent: "id:1 a:2 b:3", live: "id:1 b:3", width: 3},
		"before a rename that is done":     {last: "id:1 a:2", sent: "id:1 a:2 b:3", live: "id:1 z:2 b:3", width: 3},
		"renamed, and again since":         {last: "id:1 a:2", sent: "id:1 b:2", live: "id:1 c:2", width: 2},
		"renamed in the middle, gone now":  {last: "id:1 a:2 b:3", sent: "id:1 x:2 b:3", live: "id:1 b:3", width: 3},
		"renamed at the end, gone now":     {last: "id:1 a:2 b:3", sent: "id:1 a:2 x:3", live: "id:1 a:2", width: 3},
		"added, gone now":                  {last: "id:1 a:2", sent: "id:1 a:2 b:3", live: "id:1 a:2", width: 3},
		"one of two that are gone":         {last: "id:1", sent: "id:1 b:2", live: "id:1", width: 3},
		"renamed or new, gone now":         {last: "id:1 a:2", sent: "id:1 x:2", live: "id:1 y:3", width: 3, differs: true},
		"dropped, more added since":        {last: "id:1 a:2 b:3", sent: "id:1 b:3", live: "id:1 b:3 c:4 d:5", width: 5},
		"several at once, more since":      {last: "id:1 a:2 b:3 c:4", sent: "id:1 a:2 c:4 d:5", live: "id:1 a:2 d:5 e:6", width: 6},
		"a publication of some columns":    {last: "id:1 a:2 b:3", sent: "id:1 b:3", live: "id:1 a:2 b:3", width: 3},
		"wider":                            {last: "id:1 a:2:integer", sent: "id:1 a:2:bigint", live: "id:1 a:2:bigint", width: 2},
		"another type":                     {last: "id:1 a:2:integer", sent: "id:1 a:2:text", live: "id:1 a:2:text", width: 2, differs: true},
		"another type of a renamed column": {last: "id:1 a:2:text", sent: "id:1 b:2:integer", live: "id:1 b:2:integer", width: 2, differs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last, want := Columns{List: columnsOf(tt.last), Next: 50, Newest: newest(tt.last), Storage: 1}, columnsOf(tt.sent)
			got, err := Follow(last, sentOf(want), liveOf(columnsOf(tt.live), tt.width))
			if _, differs := errors.AsType[*DiffersError](err); differs != tt.differs || (err != nil && !differs) {
				t.Fatalf("%v, %v", got, err)
			}
			next := 50
			for i, c := range got.List {
				id := next
				if at := slices.IndexFunc(last.List, func(o Column) bool { return o.Number == want[i].Number }); at >= 0 {
					id = last.List[at].ID
				} else {
					next++
				}
				if c.Number != want[i].Number || c.ID != id {
					t.Errorf("column %s has number %d and identity %d, want %d and %d", c.Name, c.Number, c.ID, want[i].Number, id)
				}
			}
		})
	}
}

func TestFollowFindsWhatOlderRowsHave(t *testing.T) {
	t.Parallel()
	seven := "7"
	for name, tt := range map[string]struct {
		column  LiveColumn
		storage uint32 // was 1
		fill    *string
		differs bool
	}{
		"null":                       {LiveColumn{}, 1, nil, false},
		"null, rewritten":            {LiveColumn{}, 2, nil, false},
		"a constant":                 {LiveColumn{Fill: &seven, Default: true}, 1, &seven, false},
		"a constant, rewritten":      {LiveColumn{Fill: &seven, Default: true}, 2, &seven, false},
		"a default that came later":  {LiveColumn{Default: true}, 1, nil, false},
		"a value for each row":       {LiveColumn{Default: true}, 2, nil, true},
		"then without its default":   {LiveColumn{Required: true}, 2, nil, true},
		"in partitions":              {LiveColumn{}, 0, nil, false},
		"in partitions, constant":    {LiveColumn{Fill: &seven}, 0, &seven, false},
		"in partitions, for each":    {LiveColumn{Default: true}, 0, nil, true},
		"required, of an empty root": {LiveColumn{Required: true}, 0, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := Columns{List: columnsOf("id:1"), Next: 2, Newest: 1, Storage: min(tt.storage, 1)}
			tt.column.Number, tt.column.Name = 2, "a"
			live := liveOf(columnsOf("id:1"), 2)
			live.Columns, live.Storage = append(live.Columns, tt.column), tt.storage
			got, err := Follow(last, sentOf(columnsOf("id:1 a:2")), live)
			if _, differs := errors.AsType[*DiffersError](err); differs != tt.differs {
				t.Fatalf("%v, %v", got, err)
			}
			if err != nil {
				return
			}
			if f := got.List[1].Fill; (f == nil) != (tt.fill == nil) || (f != nil && *f != *tt.fill) {
				t.Errorf("older rows have %v", f)
			}
			// The value stays with the column, whatever the catalog says later.
			live.Columns[1].Fill = nil
			again, err := Follow(got, sentOf(columnsOf("id:1 b:2")), liveOf(columnsOf("id:1 b:2"), 2))
			if err != nil || again.List[1].Fill != got.List[1].Fill || again.Next != got.Next {
				t.Errorf("then %v, %v", again, err)
			}
			if got.Storage != tt.storage {
				t.Errorf("the storage is %d", got.Storage)
			}
		})
	}
}

// A rewrite that the log has not come to must not be taken for one that is known.
func TestFollowKeepsTheStorageOfWhatWasSent(t *testing.T) {
	t.Parallel()
	last := Columns{List: columnsOf("id:1 a:2"), Next: 3, Newest: 2, Storage: 1}
	live := liveOf(columnsOf("id:1 a:2 b:3 c:4"), 4)
	live.Storage, live.Columns[3].Default = 2, true
	between, err := Follow(last, sentOf(columnsOf("id:1 a:2 b:3")), live)
	if err != nil || between.Storage != 1 {
		t.Fatalf("%v, %v", between, err)
	}
	if _, err := Follow(between, sentOf(columnsOf("id:1 a:2 b:3 c:4")), live); err == nil {
		t.Error("a column with a value for each row passed")
	}
}

// As long as names are not used again, what is found is true, however far the catalog has moved on; and when it has not, a
// change is found whatever the names.
func TestFollowIsTrueOrSaysThatItCannotTell(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reuse := rapid.Bool().Draw(t, "names are used again, and the catalog is read at once")
		versions, width := history(t, reuse)
		last := First(sentOf(versions[0].list), liveOf(versions[0].list, versions[0].width))
		numbers := versions[0].list
		at, seen := 0, 0
		for at < len(versions)-1 {
			at = rapid.IntRange(at+1, len(versions)-1).Draw(t, "version with a row")
			seen = max(seen, at)
			if !reuse {
				seen = rapid.IntRange(seen, len(versions)-1).Draw(t, "version in the catalog")
			}
			truth := versions[at].list
			live := liveOf(versions[seen].list, versions[seen].width)
			next, err := Follow(last, sentOf(truth), live)
			if err != nil {
				return
			}
			for i, c := range next.List {
				old := slices.IndexFunc(numbers, func(o Column) bool { return o.Number == truth[i].Number })
				var want int
				if old >= 0 {
					want = last.List[old].ID
				}
				if (old >= 0) != (c.ID < last.Next) || (old >= 0 && c.ID != want) {
					t.Fatalf("%v\nthen %v\nnow %v (width %d of %d)\nfound %v", numbers, truth, live.Columns, live.Width, width, next.List)
				}
			}
			last, numbers = next, truth
		}
	})
}

type version struct {
	list  []Column
	width int
}

// history draws what ALTER TABLE does to a table, change by change.
func history(t *rapid.T, reuse bool) ([]version, int) {
	v := version{list: columnsOf("id:1 a:2 b:3"), width: 3}
	versions := []version{v}
	fresh := 0
	name := func() string {
		if reuse {
			return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		}
		fresh++
		return fmt.Sprint("n", fresh)
	}
	for range rapid.IntRange(1, 8).Draw(t, "changes") {
		v.list = slices.Clone(v.list)
		at := rapid.IntRange(1, max(1, len(v.list)-1)).Draw(t, "column")
		n := name()
		taken := slices.ContainsFunc(v.list, func(c Column) bool { return c.Name == n })
		switch change := rapid.IntRange(0, 2).Draw(t, "change"); {
		case change == 0 && !taken:
			v.width++
			v.list = append(v.list, Column{Number: v.width, Name: n, Source: "integer"})
		case change == 1 && !taken && at < len(v.list):
			v.list[at].Name = n
		case change == 2 && at < len(v.list):
			v.list = slices.Delete(v.list, at, at+1)
		}
		versions = append(versions, v)
	}
	return versions, v.width
}

// A table that is copied anew keeps the identities of its columns by their numbers; what is new, or has no number, gets one
// that no column ever had.
func TestAnew(t *testing.T) {
	t.Parallel()
	last := Columns{Next: 7, Newest: 5, List: []Column{
		{ID: 1, Number: 1, Name: "id", Source: "integer"}, {ID: 2, Number: 2, Name: "v", Source: "text"}, {ID: 6, Number: 5, Name: "w", Source: "text"},
	}}
	live := &Live{Width: 8, Storage: 9, Columns: []LiveColumn{{Number: 1, Name: "id"}, {Number: 2, Name: "renamed"}, {Number: 8, Name: "w"}}}
	got := Anew(last, []Sent{{Name: "id", Source: "integer"}, {Name: "renamed", Source: "bigint"}, {Name: "w", Source: "text"}, {Name: "gone"}}, live)
	var ids []int
	for _, c := range got.List {
		ids = append(ids, c.ID)
	}
	if !slices.Equal(ids, []int{1, 2, 7, 8}) || got.Next != 9 || got.Newest != 8 || got.Storage != 9 {
		t.Errorf("got %+v", got)
	}
}
