package postgres

import (
	"strconv"
	"strings"
)

// parseType takes a type as format_type prints it apart: numeric(10,2) is numeric with [10 2].
func parseType(s string) (base string, mods []int) {
	open := strings.IndexByte(s, '(')
	end := strings.IndexByte(s, ')')
	if open < 0 || end < open {
		return s, nil
	}
	for m := range strings.SplitSeq(s[open+1:end], ",") {
		n, err := strconv.Atoi(strings.TrimSpace(m))
		if err != nil {
			return s, nil
		}
		mods = append(mods, n)
	}
	return s[:open] + s[end+1:], mods
}

// rank orders the types of one family: each holds every value of the ones before it.
func rank(base string) (family string, place int) {
	switch base {
	case "smallint":
		return "number", 1
	case "integer":
		return "number", 2
	case "bigint":
		return "number", 3
	case "numeric":
		return "number", 4
	case "real":
		return "float", 1
	case "double precision":
		return "float", 2
	case "character varying":
		return "text", 1
	case "text":
		return "text", 2
	}
	return base, 0
}

// wider reports whether a holds every value of b and is not b.
func wider(a, b string) bool {
	baseA, modsA := parseType(a)
	baseB, modsB := parseType(b)
	familyA, placeA := rank(baseA)
	familyB, placeB := rank(baseB)
	switch {
	case familyA != familyB || a == b:
		return false
	case placeA != placeB && baseA == "numeric":
		// Digits before the point for the widest integer.
		return placeA > placeB && (len(modsA) == 0 || whole(modsA) >= 19)
	case placeA != placeB:
		return placeA > placeB
	case len(modsA) == 0:
		return true
	case len(modsB) == 0:
		return false
	case baseA == "numeric":
		return scale(modsA) >= scale(modsB) && whole(modsA) >= whole(modsB)
	}
	return modsA[0] >= modsB[0]
}

func scale(mods []int) int {
	if len(mods) < 2 {
		return 0
	}
	return mods[1]
}

func whole(mods []int) int { return mods[0] - scale(mods) }

// conversion says how a staged value becomes one of a column. direct means that the column reads the staged type's binary
// form, so a COPY may go straight into it; otherwise cast is what the INSERT needs, or nothing where assignment converts.
// A cast never names a length: an explicit cast to one would cut values off without a word.
func conversion(stageType string, c column) (cast string, direct bool) {
	base, _ := parseType(c.SQLType)
	staged, _ := parseType(stageType)
	if base == staged {
		return "", true
	}
	if staged == "text" {
		switch {
		case base == "character varying" || base == "character" || base == "bpchar" || base == "json" || c.Kind == "e":
			return castFor(base), true
		case base == "name":
			return "", false
		}
		return castFor(base), false
	}
	if staged == "json" && base == "text" {
		return "", true
	}
	stagedFamily, _ := rank(staged)
	baseFamily, _ := rank(base)
	if (stagedFamily == "number" || stagedFamily == "float") && (baseFamily == "number" || baseFamily == "float") {
		return "", false // assignment converts, and says so when a value does not fit
	}
	return "::" + base, false
}

// castFor is the conversion of text: none for text types, whose assignment checks the length. Padded text is compared as
// such: as text, a key of char(4) would never be found.
func castFor(base string) string {
	switch base {
	case "character varying", "text", "name":
		return ""
	case "character", "bpchar":
		return "::bpchar"
	case "bit", `"bit"`:
		return `::"bit"` // the bare word means a length of 1
	case "bit[]", `"bit"[]`:
		return `::"bit"[]`
	case "character[]":
		return "::bpchar[]"
	}
	return "::" + base
}
