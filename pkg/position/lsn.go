package position

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a byte position in the write-ahead log of one PostgreSQL timeline. Zero is "invalid", as in PostgreSQL.
type LSN uint64

// String is PostgreSQL's own form: two hexadecimal halves without padding, e.g. 16/B374D848.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// ParseLSN reads PostgreSQL's form.
func ParseLSN(s string) (LSN, error) {
	hi, lo, ok := strings.Cut(s, "/")
	h, err := strconv.ParseUint(hi, 16, 32)
	if err != nil || !ok {
		return 0, fmt.Errorf("parse LSN %q: want two hexadecimal numbers around a slash", s)
	}
	l, err := strconv.ParseUint(lo, 16, 32)
	if err != nil {
		return 0, fmt.Errorf("parse LSN %q: want two hexadecimal numbers around a slash", s)
	}
	return LSN(h<<32 | l), nil
}
