package position

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// span is the numbers from first to last, both included.
type span struct{ first, last uint64 }

// GTIDSet is a set of transactions of MySQL. The zero value is empty. Sets are changed in place: Clone one that others keep.
type GTIDSet struct {
	of map[Origin][]span // ordered, apart, never empty
}

// ParseGTIDSet reads MySQL's form: uuid:1-5:7:tag:1-3,uuid:4. The empty text is the empty set.
func ParseGTIDSet(s string) (GTIDSet, error) {
	var set GTIDSet
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part) // the server breaks long sets into lines
		if part == "" {
			continue
		}
		if err := set.parse(part); err != nil {
			return GTIDSet{}, fmt.Errorf("parse GTID set: %w", err)
		}
	}
	return set, nil
}

// parse adds what is written of one server.
func (s *GTIDSet) parse(text string) error {
	id, rest, _ := strings.Cut(text, ":")
	o, ok := Origin{}, false
	if o.UUID, ok = parseUUID(strings.TrimSpace(id)); !ok || rest == "" {
		return fmt.Errorf("%q: want uuid:first-last", text)
	}
	for item := range strings.SplitSeq(rest, ":") {
		item = strings.TrimSpace(item)
		if tag, ok := parseTag(item); ok {
			o.Tag = tag
			continue
		}
		from, to, ranged := strings.Cut(item, "-")
		first, err := strconv.ParseUint(from, 10, 63)
		last := first
		if err == nil && ranged {
			last, err = strconv.ParseUint(to, 10, 63)
		}
		if err != nil || first == 0 || last < first {
			return fmt.Errorf("%q: want numbers from 1 on, as first-last", text)
		}
		s.add(o, span{first, last})
	}
	return nil
}

// Add puts one transaction into the set.
func (s *GTIDSet) Add(g GTID) {
	if spans := s.of[g.Origin]; len(spans) > 0 && spans[len(spans)-1].last+1 == g.N {
		spans[len(spans)-1].last = g.N // nearly always: servers number one by one
		return
	}
	s.add(g.Origin, span{g.N, g.N})
}

// AddSet puts all transactions of another set into this one.
func (s *GTIDSet) AddSet(o GTIDSet) {
	for origin, spans := range o.of {
		for _, v := range spans {
			s.add(origin, v)
		}
	}
}

func (s *GTIDSet) add(o Origin, v span) {
	if s.of == nil {
		s.of = make(map[Origin][]span)
	}
	spans := s.of[o]
	// Those that touch v are one with it.
	from, _ := slices.BinarySearchFunc(spans, v.first, func(x span, first uint64) int { return cmp.Compare(x.last+1, first) })
	to := from
	for to < len(spans) && spans[to].first <= v.last+1 {
		v.first, v.last = min(v.first, spans[to].first), max(v.last, spans[to].last)
		to++
	}
	s.of[o] = slices.Replace(spans, from, to, v)
}

// Contains reports whether the transaction is in the set.
func (s GTIDSet) Contains(g GTID) bool {
	return contains(s.of[g.Origin], span{g.N, g.N})
}

func contains(spans []span, v span) bool {
	i, _ := slices.BinarySearchFunc(spans, v.first, func(x span, first uint64) int { return cmp.Compare(x.last, first) })
	return i < len(spans) && spans[i].first <= v.first && v.last <= spans[i].last
}

// ContainsSet reports whether every transaction of o is in the set.
func (s GTIDSet) ContainsSet(o GTIDSet) bool {
	for origin, spans := range o.of {
		own := s.of[origin]
		for _, v := range spans {
			if !contains(own, v) {
				return false
			}
		}
	}
	return true
}

// Minus returns the transactions of the set that o does not have.
func (s GTIDSet) Minus(o GTIDSet) GTIDSet {
	var rest GTIDSet
	for origin, spans := range s.of {
		for _, v := range spans {
			for _, cut := range o.of[origin] {
				if cut.last < v.first || cut.first > v.last {
					continue
				}
				if cut.first > v.first {
					rest.add(origin, span{v.first, cut.first - 1})
				}
				v.first = cut.last + 1
			}
			if v.first <= v.last {
				rest.add(origin, v)
			}
		}
	}
	return rest
}

// Equal reports whether both have the same transactions.
func (s GTIDSet) Equal(o GTIDSet) bool {
	return maps.EqualFunc(s.of, o.of, slices.Equal[[]span])
}

// IsEmpty reports whether nothing is in the set.
func (s GTIDSet) IsEmpty() bool { return len(s.of) == 0 }

// Clone returns a set of its own with the same transactions.
func (s GTIDSet) Clone() GTIDSet {
	c := GTIDSet{of: make(map[Origin][]span, len(s.of))}
	for o, spans := range s.of {
		c.of[o] = slices.Clone(spans)
	}
	return c
}

// String is MySQL's own form, servers and tags in order.
func (s GTIDSet) String() string {
	origins := slices.SortedFunc(maps.Keys(s.of), func(a, b Origin) int {
		return cmp.Or(bytes.Compare(a.UUID[:], b.UUID[:]), strings.Compare(a.Tag, b.Tag))
	})
	var b []byte
	for i, o := range origins {
		if i == 0 || origins[i-1].UUID != o.UUID {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendUUID(b, o.UUID)
		}
		if o.Tag != "" {
			b = append(append(b, ':'), o.Tag...)
		}
		for _, v := range s.of[o] {
			b = strconv.AppendUint(append(b, ':'), v.first, 10)
			if v.last > v.first {
				b = strconv.AppendUint(append(b, '-'), v.last, 10)
			}
		}
	}
	return string(b)
}

// MarshalText implements encoding.TextMarshaler.
func (s GTIDSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *GTIDSet) UnmarshalText(text []byte) error {
	read, err := ParseGTIDSet(string(text))
	*s = read
	return err
}

// MariaGTIDSet is the last transaction of each domain of a MariaDB server: all before it in its domain are in the set. The
// zero value is empty. Sets are changed in place: Clone one that others keep.
type MariaGTIDSet struct {
	last map[uint32]MariaGTID
}

// ParseMariaGTIDSet reads MariaDB's form: one GTID for each domain, between commas.
func ParseMariaGTIDSet(s string) (MariaGTIDSet, error) {
	var set MariaGTIDSet
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		g, err := ParseMariaGTID(part)
		if err != nil {
			return MariaGTIDSet{}, err
		}
		set.Add(g)
	}
	return set, nil
}

// Add puts a transaction, and with it all before it in its domain, into the set.
func (s *MariaGTIDSet) Add(g MariaGTID) {
	if s.last == nil {
		s.last = make(map[uint32]MariaGTID)
	}
	if old, ok := s.last[g.Domain]; !ok || old.N <= g.N {
		s.last[g.Domain] = g
	}
}

// AddSet puts all transactions of another set into this one.
func (s *MariaGTIDSet) AddSet(o MariaGTIDSet) {
	for _, g := range o.last {
		s.Add(g)
	}
}

// Contains reports whether the transaction is in the set.
func (s MariaGTIDSet) Contains(g MariaGTID) bool {
	last, ok := s.last[g.Domain]
	return ok && g.N <= last.N
}

// ContainsSet reports whether every transaction of o is in the set.
func (s MariaGTIDSet) ContainsSet(o MariaGTIDSet) bool {
	for _, g := range o.last {
		if !s.Contains(g) {
			return false
		}
	}
	return true
}

// IsEmpty reports whether nothing is in the set.
func (s MariaGTIDSet) IsEmpty() bool { return len(s.last) == 0 }

// Clone returns a set of its own with the same transactions.
func (s MariaGTIDSet) Clone() MariaGTIDSet { return MariaGTIDSet{last: maps.Clone(s.last)} }

// String is MariaDB's own form, in the order of the domains.
func (s MariaGTIDSet) String() string {
	var texts []string
	for _, domain := range slices.Sorted(maps.Keys(s.last)) {
		texts = append(texts, s.last[domain].String())
	}
	return strings.Join(texts, ",")
}

// MarshalText implements encoding.TextMarshaler.
func (s MariaGTIDSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *MariaGTIDSet) UnmarshalText(text []byte) error {
	read, err := ParseMariaGTIDSet(string(text))
	*s = read
	return err
}
