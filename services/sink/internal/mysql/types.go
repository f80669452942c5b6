package mysql

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
)

const (
	// keyBytes is what an index of InnoDB holds at most, rowBytes what all columns of a row that are not BLOBs may take, less
	// what their lengths and nulls do.
	keyBytes = 3072
	rowBytes = 60_000
	// widest is how many bytes a character of utf8mb4 has at most.
	widest = 4

	maxPrecision = 65
	maxScale     = 30
)

const (
	longText = "longtext"
	longBlob = "longblob"
)

// columnTypes chooses the types of a table's columns, if it were made now: those of the source when it is MySQL, else the
// narrowest that hold every value. Text and bytes of a key share what an index holds; text that would make the row too long
// for its page is kept apart.
func columnTypes(s *rows.Schema) []string {
	types := make([]string, s.NumColumns())
	share := keyShare(s)
	used := 0
	for i, c := range s.Columns() {
		t := columnType(c, s.Origin())
		if c.KeyPos > 0 {
			t = keyType(t, c, share)
		} else if size := bytesOf(t); size > 0 && used+size > rowBytes {
			t = longText
			if family, _ := familyOf(t); family == familyBytes {
				t = longBlob
			}
		}
		used += bytesOf(t)
		types[i] = t
	}
	return types
}

func columnType(c rows.Column, origin string) string {
	if origin == mycodec.Origin && c.Source != "" && c.Type.Kind != rows.KindList {
		return c.Source
	}
	if n, ok := lengthAt(c.Source); ok && c.Type.Kind == rows.KindText && n*widest <= 4*1024 {
		return "varchar(" + strconv.Itoa(n) + ")"
	}
	return typeOf(c.Type)
}

// charTypes are types of other databases whose length is one of characters.
var charTypes = regexp.MustCompile(`^(?:character varying|varchar|character|char)\((\d+)\)$`)

func lengthAt(source string) (n int, ok bool) {
	m := charTypes.FindStringSubmatch(source)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil && n > 0
}

func typeOf(t rows.Type) string {
	switch t.Kind {
	case rows.KindBool:
		return "tinyint(1)"
	case rows.KindInt8:
		return "tinyint"
	case rows.KindInt16:
		return "smallint"
	case rows.KindInt32:
		return "int"
	case rows.KindInt64:
		return "bigint"
	case rows.KindUint8:
		return "tinyint unsigned"
	case rows.KindUint16:
		return "smallint unsigned"
	case rows.KindUint32:
		return "int unsigned"
	case rows.KindUint64:
		return "bigint unsigned"
	case rows.KindFloat32:
		return "float"
	case rows.KindFloat64:
		return "double"
	case rows.KindDecimal:
		if t.Precision <= maxPrecision && t.Scale <= maxScale {
			return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
		}
		return longText
	case rows.KindBytes:
		return longBlob
	case rows.KindDate:
		return "date"
	case rows.KindTime, rows.KindDuration:
		return "time(6)"
	case rows.KindTimestamp, rows.KindTimestampTZ: // TIMESTAMP ends in 2038; the session's zone is UTC
		return "datetime(6)"
	case rows.KindUUID:
		return "char(36)"
	case rows.KindJSON, rows.KindList:
		return "json"
	case rows.KindDecimalText, rows.KindText:
	}
	return longText
}

// keyShare is how many bytes of an index each text or byte column of the key may have.
func keyShare(s *rows.Schema) int {
	left, open := keyBytes, 0
	for _, i := range s.Key() {
		t := columnType(s.Column(i), s.Origin())
		if family, _ := familyOf(t); family == familyText || family == familyBytes {
			if size := bytesOf(t); size == 0 || size > keyBytes/len(s.Key()) {
				open++
				continue
			}
		}
		left -= max(bytesOf(t), 8)
	}
	return left / max(open, 1)
}

// keyType bounds text and bytes so that an index can hold them. A longer value is one that the target cannot take.
func keyType(t string, c rows.Column, share int) string {
	family, _ := familyOf(t)
	size := bytesOf(t)
	switch {
	case family == familyText && (size == 0 || size > share):
		if c.Type.Kind == rows.KindDecimalText || c.Type.Kind == rows.KindDecimal {
			return "varchar(" + strconv.Itoa(min(share/widest, 200)) + ")"
		}
		return "varchar(" + strconv.Itoa(share/widest) + ")"
	case family == familyBytes && (size == 0 || size > share):
		return "varbinary(" + strconv.Itoa(share) + ")"
	}
	return t
}

// A family has types that hold each other's values: each type those of the ones before it.
const (
	familyInteger = "integer"
	familyDecimal = "decimal"
	familyFloat   = "float"
	familyText    = "text"
	familyBytes   = "bytes"
	familyMoment  = "moment"
)

var (
	integers = []string{"tinyint", "smallint", "mediumint", "int", "bigint"}
	texts    = []string{"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
	blobs    = []string{"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
)

// splitType takes a type as information_schema writes it apart.
func splitType(t string) (base string, mods []int, unsigned bool) {
	base = strings.ToLower(t)
	if rest, ok := strings.CutSuffix(base, " zerofill"); ok {
		base = rest
	}
	base, unsigned = strings.CutSuffix(base, " unsigned")
	head, inner, ok := strings.Cut(base, "(")
	if !ok {
		return base, nil, unsigned
	}
	for m := range strings.SplitSeq(strings.TrimSuffix(inner, ")"), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(m))
		if err != nil {
			return head, nil, unsigned // the members of an enumeration
		}
		mods = append(mods, n)
	}
	return head, mods, unsigned
}

// plainType is a type without what changes no value: how many digits of an integer are shown.
func plainType(t string, maria bool) string {
	base, _, unsigned := splitType(t)
	switch {
	case slices.Contains(integers, base):
		if unsigned {
			base += " unsigned"
		}
		return base
	case base == "year":
		return base
	case base == "json" && maria: // its JSON is a text with a check
		return longText
	}
	return strings.Replace(t, "ENUM(", "enum(", 1)
}

func familyOf(t string) (family string, place int) {
	base, _, _ := splitType(t)
	for _, f := range [...]struct {
		name string
		of   []string
	}{{familyInteger, integers}, {familyText, texts}, {familyBytes, blobs}} {
		if at := slices.Index(f.of, base); at >= 0 {
			return f.name, at
		}
	}
	switch base {
	case "decimal":
		return familyDecimal, 0
	case "float":
		return familyFloat, 0
	case "double":
		return familyFloat, 1
	case "date", "time", "datetime", "timestamp":
		return familyMoment, 0
	}
	return base, 0
}

// bytesOf is what a value takes in its row at most, without BLOBs, which are kept apart; 0 for those and what is no string.
func bytesOf(t string) int {
	base, mods, _ := splitType(t)
	if len(mods) != 1 {
		return 0
	}
	switch base {
	case "char", "varchar":
		return mods[0] * widest
	case "binary", "varbinary":
		return mods[0]
	}
	return 0
}

// capacity is how many characters or bytes a string type holds.
func capacity(t string) int {
	base, mods, _ := splitType(t)
	if len(mods) == 1 {
		return mods[0]
	}
	switch strings.TrimSuffix(strings.TrimSuffix(base, "text"), "blob") {
	case "tiny":
		return 1<<8 - 1
	case "":
		return 1<<16 - 1
	case "medium":
		return 1<<24 - 1
	case "long":
		return 1<<32 - 1
	}
	return 1
}

// wider reports whether a holds every value of b and is not b.
func wider(a, b string) bool {
	if a == b {
		return false
	}
	baseA, modsA, unsignedA := splitType(a)
	baseB, modsB, unsignedB := splitType(b)
	familyA, placeA := familyOf(a)
	familyB, placeB := familyOf(b)
	switch {
	case familyA == familyDecimal && familyB == familyInteger:
		return len(modsA) == 2 && modsA[0]-modsA[1] >= 20 && (!unsignedA || unsignedB)
	case baseA == "enum" && baseB == "enum", baseA == "set" && baseB == "set": // members added at the end
		return strings.HasPrefix(a, strings.TrimSuffix(b, ")")+",")
	case familyA == familyText && (baseB == "enum" || baseB == "set"):
		return placeA > slices.Index(texts, "varchar")
	case familyA != familyB:
		return false
	}
	switch familyA {
	case familyInteger:
		return (unsignedA == unsignedB && placeA > placeB) || (!unsignedA && unsignedB && placeA > placeB)
	case familyDecimal:
		return len(modsA) == 2 && len(modsB) == 2 && modsA[1] >= modsB[1] && modsA[0]-modsA[1] >= modsB[0]-modsB[1] &&
			(unsignedA == unsignedB || unsignedB)
	case familyFloat:
		return placeA > placeB
	case familyText, familyBytes:
		fixed := baseA == "char" || baseA == "binary" // which pads, or takes blanks away
		return !fixed && capacity(a) >= capacity(b)
	case familyMoment:
		return baseA == baseB && digitsOf(modsA) > digitsOf(modsB)
	}
	return false
}

func digitsOf(mods []int) int {
	if len(mods) == 0 {
		return 0
	}
	return mods[0]
}

// rounds reports whether a column of one type may take a value of another and change it without an error.
func rounds(to, from string) bool {
	if to == from || wider(to, from) {
		return false
	}
	familyTo, _ := familyOf(to)
	familyFrom, _ := familyOf(from)
	switch familyTo {
	case familyInteger:
		return familyFrom == familyDecimal || familyFrom == familyFloat
	case familyDecimal, familyFloat, familyMoment:
		return true
	}
	return false
}

// textual reports whether a type takes any text.
func textual(t string) bool {
	family, _ := familyOf(t)
	return family == familyText
}
