package postgres

import "weir.dev/weir/pkg/pgcodec"

// conversion says how a staged value becomes one of a column. direct means that the column reads the staged type's binary
// form, so a COPY may go straight into it; otherwise cast is what the INSERT needs, or nothing where assignment converts.
// A cast never names a length: an explicit cast to one would cut values off without a word.
func conversion(stageType string, c column) (cast string, direct bool) {
	base, _ := pgcodec.SplitType(c.SQLType)
	staged, _ := pgcodec.SplitType(stageType)
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
	if pgcodec.IsNumber(staged) && pgcodec.IsNumber(base) {
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
