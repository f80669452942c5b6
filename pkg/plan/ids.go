package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// VertexID names a stage of a job's plan; also the operator id its state hangs on (I1). A source's readers and a
// sink's writers carry the name the user gave; its enumerator and committer add a suffix that no user name can have.
type VertexID string

// Suffixes of the two vertices the planner adds. Users' names cannot hold an underscore.
const (
	enumeratorSuffix = "_enum"
	committerSuffix  = "_commit"
)

// EnumeratorOf is the vertex that decides what the source's readers read.
func EnumeratorOf(source string) VertexID { return VertexID(source + enumeratorSuffix) }

// CommitterOf is the vertex that decides what becomes visible in the sink.
func CommitterOf(sink string) VertexID { return VertexID(sink + committerSuffix) }

// SubtaskID is one parallel instance of a vertex.
type SubtaskID struct {
	Vertex VertexID
	Index  int
}

// String is the one token used in subjects, consumers, object names and headers: <vertex>-<index>.
func (s SubtaskID) String() string { return string(s.Vertex) + "-" + strconv.Itoa(s.Index) }

// MarshalText makes the token form the JSON form, also as a key of maps.
func (s SubtaskID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the token form.
func (s *SubtaskID) UnmarshalText(b []byte) error {
	id, err := ParseSubtask(string(b))
	*s = id
	return err
}

// ParseSubtask reads the token form; the index follows the last dash because vertex names may hold dashes.
func ParseSubtask(s string) (SubtaskID, error) {
	at := strings.LastIndexByte(s, '-')
	if at <= 0 {
		return SubtaskID{}, fmt.Errorf("parse subtask %q: want <vertex>-<index>", s)
	}
	n, err := strconv.Atoi(s[at+1:])
	id := SubtaskID{Vertex: VertexID(s[:at]), Index: n}
	if err != nil || n < 0 || id.String() != s {
		return SubtaskID{}, fmt.Errorf("parse subtask %q: want <vertex>-<index>", s)
	}
	return id, nil
}

// Compare orders subtasks by vertex, then by index as a number.
func (s SubtaskID) Compare(o SubtaskID) int {
	if c := strings.Compare(string(s.Vertex), string(o.Vertex)); c != 0 {
		return c
	}
	return s.Index - o.Index
}

// Channel is one (edge, from-subtask, to-subtask): the unit of ordering, numbering and tallies.
type Channel struct {
	From, To SubtaskID
}

// String is <from>><to>; neither token can hold '>'.
func (c Channel) String() string { return c.From.String() + ">" + c.To.String() }

// MarshalText makes the string form the JSON form, also as a key of maps.
func (c Channel) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the string form.
func (c *Channel) UnmarshalText(b []byte) error {
	from, to, ok := strings.Cut(string(b), ">")
	if !ok {
		return fmt.Errorf("parse channel %q: want <from>><to>", b)
	}
	var err error
	if c.From, err = ParseSubtask(from); err != nil {
		return err
	}
	c.To, err = ParseSubtask(to)
	return err
}

// Compare orders channels by sender, then by receiver.
func (c Channel) Compare(o Channel) int {
	if d := c.From.Compare(o.From); d != 0 {
		return d
	}
	return c.To.Compare(o.To)
}
