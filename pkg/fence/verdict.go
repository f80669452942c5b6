package fence

// Verdict is what a holder of a token must do with something that carries another.
type Verdict uint8

const (
	// Same token: accept.
	Same Verdict = iota + 1
	// Older token: drop, acknowledge, count. It is a zombie's.
	Older
	// Newer token: neither accept nor acknowledge; hold it and read the head record again.
	// Acknowledging it would lose the message for its true receiver.
	Newer
)

// Judge compares the token a message carries with the holder's own.
func Judge(own, seen Token) Verdict {
	switch {
	case seen < own:
		return Older
	case seen > own:
		return Newer
	}
	return Same
}

// String names the verdict for logs and metrics.
func (v Verdict) String() string {
	switch v {
	case Same:
		return "same"
	case Older:
		return "older"
	case Newer:
		return "newer"
	}
	return "none"
}
