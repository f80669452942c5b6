package core

import "math"

// search looks for the likeliest numbers of columns that were sent: an assignment of them, in order, to the numbers that
// they can have.
type search struct {
	sent  []Sent
	may   []candidate
	found []answer // by column and candidate
}

// candidate is a number that a column can have.
type candidate struct {
	number int
	// was is the name in the last version, is that in the catalog; known and live say whether there is one.
	was, is     string
	known, live bool
	unsent      bool
}

// answer is what is known about assigning the rest of the columns to the rest of the candidates.
type answer struct {
	done    bool
	ways    int  // 0, 1, or 2 for more
	cost    int  // names that must have changed, then columns that must be new
	tied    bool // another way costs the same
	renames bool // the cheapest way has a column that had another name in the last version
	take    bool // the cheapest way takes the first candidate for the first column
}

const costOfRename = 1 << 16

func newSearch(last *Columns, sent []Sent, live *Live) *search {
	s := &search{sent: sent}
	for _, c := range last.List {
		if c.Number != 0 {
			s.may = append(s.may, candidate{number: c.Number, was: c.Name, known: true})
		}
	}
	for n := last.Newest + 1; n <= live.Width; n++ {
		s.may = append(s.may, candidate{number: n})
	}
	for i := range s.may {
		if now := live.number(s.may[i].number); now != nil {
			s.may[i].live, s.may[i].is, s.may[i].unsent = true, now.Name, now.Unsent
		}
	}
	s.found = make([]answer, (len(sent)+1)*(len(s.may)+1))
	return s
}

// best assigns the columns from i on to the candidates from j on.
func (s *search) best(i, j int) *answer {
	a := &s.found[i*(len(s.may)+1)+j]
	if a.done {
		return a
	}
	a.done = true
	if i == len(s.sent) {
		for _, c := range s.may[j:] {
			if c.known && c.live && !c.unsent {
				return a // it was there all the time and would have been sent
			}
		}
		a.ways = 1
		return a
	}
	if j == len(s.may) {
		return a
	}
	c := s.may[j]
	take, skip := *s.best(i+1, j+1), answer{}
	if !c.live || c.unsent {
		// A column that lives and is older than one that was sent was sent too.
		skip = *s.best(i, j+1)
	}
	name := s.sent[i].Name
	takeCost, skipCost := math.MaxInt, math.MaxInt
	if take.ways > 0 {
		takeCost = take.cost
		if c.known && c.was != name {
			takeCost += costOfRename
		}
		if c.live && c.is != name {
			takeCost += costOfRename
		}
		switch {
		case c.known:
		case c.live:
			takeCost++
		default:
			takeCost += costOfRename + 1 // nothing says that there was a column of this name
		}
	}
	if skip.ways > 0 {
		skipCost = skip.cost
	}
	a.ways = min(take.ways+skip.ways, 2)
	if takeCost <= skipCost {
		a.take, a.cost, a.tied = true, takeCost, take.tied
		a.renames = take.renames || (c.known && c.was != name)
		if take.ways > 0 && takeCost == skipCost {
			// Which of two new columns that are gone again it was makes no difference.
			other := s.may[s.next(i, j+1)]
			a.tied = a.tied || skip.tied || c.known || c.live || other.known || other.live
		}
		return a
	}
	a.cost, a.tied, a.renames = skipCost, skip.tied, skip.renames
	return a
}

// next is the candidate that the cheapest way from j on takes for column i.
func (s *search) next(i, j int) int {
	for !s.best(i, j).take {
		j++
	}
	return j
}

// numbers reads the cheapest way off.
func (s *search) numbers() []int {
	numbers := make([]int, 0, len(s.sent))
	for i, j := 0, 0; i < len(s.sent); i++ {
		j = s.next(i, j)
		numbers = append(numbers, s.may[j].number)
		j++
	}
	return numbers
}
