package core

import (
	"hash/fnv"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/fence"
)

// maxName is the longest identifier PostgreSQL keeps whole; longer ones it cuts without a word.
const maxName = 63

// maxFence is the number of digits of the largest token.
const maxFence = 20

// BaseName is the name of a job's slot and publication: weir_<job>_<life>. It leaves room for the suffix that
// [SlotName] may add. Slots allow lower-case letters, digits and underscores only.
func BaseName(job, life string) string {
	tail := "_" + word(life)
	room := maxName - maxFence - 1 - len("weir_") - len(tail)
	j := word(job)
	if len(j) > room {
		j = j[:max(room, 0)]
	}
	return "weir_" + j + tail
}

// SlotName is the name of the slot an attempt makes when a slot of the base name is left over from an earlier one.
func SlotName(job, life string, f fence.Token) string { return BaseName(job, life) + "_" + f.String() }

// OwnsSlot reports whether a slot was made by this life of the job, by any of its attempts.
func OwnsSlot(job, life, slot string) bool {
	base := BaseName(job, life)
	if slot == base {
		return true
	}
	suffix, ok := strings.CutPrefix(slot, base+"_")
	if !ok {
		return false
	}
	_, err := fence.ParseToken(suffix)
	return err == nil
}

// SlotFence is the token in the name of a slot of this life; zero for the base name.
func SlotFence(job, life, slot string) fence.Token {
	suffix, _ := strings.CutPrefix(slot, BaseName(job, life)+"_")
	f, err := fence.ParseToken(suffix)
	if err != nil {
		return 0
	}
	return f
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
