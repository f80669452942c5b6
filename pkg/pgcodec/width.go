package pgcodec

import (
	"strconv"
	"strings"
)

// SplitType takes a type as format_type prints it apart: numeric(10,2) is numeric with [10 2], an array keeps its brackets
// at the base. A modifier that is not of numbers stays in the base.
func SplitType(s string) (base string, mods []int) {
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

// families of types that hold each other's values: each type those of the ones before it.
const (
	familyInteger = "integer"
	familyFloat   = "float"
	familyText    = "text"
)

func rank(base string) (family string, place int) {
	switch base {
	case "smallint":
		return familyInteger, 1
	case "integer":
		return familyInteger, 2
	case "bigint":
		return familyInteger, 3
	case "numeric":
		return familyInteger, 4
	case "real":
		return familyFloat, 1
	case "double precision":
		return familyFloat, 2
	case "character varying":
		return familyText, 1
	case "text":
		return familyText, 2
	}
	return base, 0
}

// IsNumber reports whether a type, as format_type prints it, is one that assignment converts to every other such type.
func IsNumber(sqlType string) bool {
	base, _ := SplitType(sqlType)
	family, place := rank(base)
	return place > 0 && family != familyText
}

// Wider reports whether a holds every value of b and is not b. Both are types as format_type prints them.
func Wider(a, b string) bool {
	elemA, arrayA := strings.CutSuffix(a, "[]")
	elemB, arrayB := strings.CutSuffix(b, "[]")
	if arrayA && arrayB {
		return Wider(elemA, elemB)
	}
	baseA, modsA := SplitType(a)
	baseB, modsB := SplitType(b)
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

// KeepsValues reports whether ALTER COLUMN TYPE from one type to another, without USING, leaves every value what it was or
// fails: numbers stay the same number, texts the same text. Both are types as format_type prints them.
func KeepsValues(from, to string) bool {
	if from == to {
		return true
	}
	if base, _ := SplitType(from); base == "bit" || base == `"bit"` {
		return false // another length is only to be had by an explicit cast, which cuts or pads
	}
	if Wider(to, from) {
		return true
	}
	// Narrower is the same where what does not fit is an error; elsewhere it is rounded.
	baseFrom, _ := SplitType(from)
	baseTo, _ := SplitType(to)
	familyFrom, placeFrom := rank(baseFrom)
	familyTo, placeTo := rank(baseTo)
	whole := func(place int) bool { return place >= 1 && place <= 3 }
	return familyFrom == familyTo &&
		(familyFrom == familyText || (familyFrom == familyInteger && whole(placeFrom) && whole(placeTo)))
}

// Rounds reports whether assignment to a column of one type may change a value of another without an error. Both are types
// as format_type prints them.
func Rounds(to, from string) bool {
	if to == from || Wider(to, from) {
		return false
	}
	elemTo, arrayTo := strings.CutSuffix(to, "[]")
	elemFrom, arrayFrom := strings.CutSuffix(from, "[]")
	if arrayTo && arrayFrom {
		return Rounds(elemTo, elemFrom)
	}
	baseTo, modsTo := SplitType(to)
	baseFrom, modsFrom := SplitType(from)
	switch {
	case IsNumber(to) && IsNumber(from):
		if family, place := rank(baseFrom); family == familyInteger && place < 4 {
			// An integer that does not fit another is an error; a float takes the nearest.
			family, _ := rank(baseTo)
			return family == familyFloat
		}
		return baseTo != "numeric" || baseFrom != "numeric" || len(modsTo) > 0 && (len(modsFrom) == 0 || scale(modsTo) < scale(modsFrom))
	case baseTo == baseFrom:
		return strings.HasPrefix(baseTo, "time") || strings.HasPrefix(baseTo, "interval")
	}
	return false
}

func scale(mods []int) int {
	if len(mods) < 2 {
		return 0
	}
	return mods[1]
}

func whole(mods []int) int { return mods[0] - scale(mods) }
