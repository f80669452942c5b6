package core

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// maxName is the longest identifier PostgreSQL keeps whole; longer ones it cuts without a word.
const maxName = 63

// maxFence is the number of digits of the largest token.
const maxFence = 20

// Owner is who makes a slot and a publication: one source of one life of a job. Two sources of a job on one server, and two
// lives of a job, have names of their own.
type Owner struct{ Job, Source, Life string }

// Publication is the name of the owner's publication, and what the names of its slots begin with: weir_<job>_<source>_<life>.
// It leaves room for the suffix that [Owner.Slot] adds. What of job and source does not fit is replaced by a hash of both;
// the life is always whole. Slots allow lower-case letters, digits and underscores only.
func (o Owner) Publication() string {
	tail := "_" + word(o.Life)
	room := maxName - maxFence - 1 - len("weir_") - len(tail)
	who := word(o.Job) + "_" + word(o.Source)
	if len(who) > room {
		h := fnv.New32a()
		h.Write([]byte(o.Job + "/" + o.Source))
		who = who[:max(room-1-sumDigits, 0)] + "_" + fmt.Sprintf("%0*x", sumDigits, h.Sum32())
	}
	return "weir_" + who + tail
}

// sumDigits is the length of the hash in a shortened name.
const sumDigits = 8

// Slot is the name of the slot that an attempt makes.
func (o Owner) Slot(f fence.Token) string { return o.Publication() + "_" + f.String() }

// Savepoint is the name of the slot that keeps the log for an epoch.
func (o Owner) Savepoint(e epoch.ID) string { return o.Publication() + "_s" + e.String() }

// Kept is the epoch for which one of the owner's slots keeps the log; ok is false for other slots.
func (o Owner) Kept(slot string) (e epoch.ID, ok bool) {
	suffix, ok := strings.CutPrefix(slot, o.Publication()+"_s")
	if !ok {
		return 0, false
	}
	e, err := epoch.ParseID(suffix)
	return e, err == nil
}

// Owns reports whether a slot was made by the owner, by any of its attempts or for a savepoint.
func (o Owner) Owns(slot string) bool {
	base := o.Publication()
	if _, kept := o.Kept(slot); kept || slot == base {
		return true
	}
	suffix, ok := strings.CutPrefix(slot, base+"_")
	if !ok {
		return false
	}
	_, err := fence.ParseToken(suffix)
	return err == nil
}

// Fence is the token in the name of one of the owner's slots; zero when there is none.
func (o Owner) Fence(slot string) fence.Token {
	suffix, _ := strings.CutPrefix(slot, o.Publication()+"_")
	f, err := fence.ParseToken(suffix)
	if err != nil {
		return 0
	}
	return f
}

// made is the form of the names that Weir gives to slots and publications.
var made = regexp.MustCompile(`^weir_[a-z0-9_]+?_([0-9a-f]{16})(?:_s?[0-9]+)?$`)

// LifeOf is the life in the name of a slot or a publication; ok is false when it is not one of Weir's.
func LifeOf(name string) (life string, ok bool) {
	m := made.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1], true
}

func word(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s)
}

// Session is who holds a connection, as its application_name says.
type Session struct {
	// Job is for remedies; it is in no name, since the life is.
	Job    string
	Life   string
	Vertex string
	Fence  fence.Token
}

// String is weir:<life>:<vertex>:<fence>. A vertex too long for the server's limit is shortened to a part and a hash,
// because a cut at the end would change the fence.
func (s Session) String() string {
	head, tail := "weir:"+s.Life+":", ":"+s.Fence.String()
	v := s.Vertex
	if room := maxName - len(head) - len(tail); len(v) > room {
		h := fnv.New32a()
		h.Write([]byte(v))
		sum := strconv.FormatUint(uint64(h.Sum32()), 36)
		v = v[:max(room-len(sum)-1, 0)] + "~" + sum
	}
	return head + v + tail
}

// ParseSession reads an application_name; ok is false when it is not one of Weir's.
func ParseSession(name string) (s Session, ok bool) {
	rest, ok := strings.CutPrefix(name, "weir:")
	if !ok {
		return Session{}, false
	}
	life, rest, ok := strings.Cut(rest, ":")
	at := strings.LastIndexByte(rest, ':')
	if !ok || at < 0 {
		return Session{}, false
	}
	f, err := fence.ParseToken(rest[at+1:])
	if err != nil {
		return Session{}, false
	}
	return Session{Life: life, Vertex: rest[:at], Fence: f}, true
}

// Supersedes reports whether s may end a session with this application_name: one of the same life with a lower fence,
// and nothing else.
func (s Session) Supersedes(applicationName string) bool {
	o, ok := ParseSession(applicationName)
	return ok && o.Life == s.Life && o.Fence < s.Fence
}
