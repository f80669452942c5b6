package fence

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrFenced says that the holder's attempt has been replaced: stop at once, flush nothing.
var ErrFenced = errors.New("fenced: a newer attempt owns this job")

// Token numbers the attempts of one job. The first attempt has token 1; zero means "no attempt yet"
// and never equals the token of a message.
type Token uint64

// String returns the decimal form used in subjects, stream names and headers.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// ParseToken reads the decimal form. Zero, signs, leading zeros and anything that is not a uint64 are refused,
// so that each token has exactly one spelling in a subject.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse fence token %q: %w", s, err)
	}
	t := Token(n)
	if n == 0 || t.String() != s {
		return 0, fmt.Errorf("parse fence token %q: not a canonical positive number", s)
	}
	return t, nil
}
