package mycodec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/rows"
)

// ErrUnknown is in the chain of the error about a type, or a character set, that is not known here.
var ErrUnknown = errors.New("not known")

// Origin is what a MySQL or MariaDB source passes to rows.NewSchema.
const Origin = "mysql"

// The types as the binary log numbers them (enum_field_types).
const (
	tTiny       = 1
	tShort      = 2
	tLong       = 3
	tFloat      = 4
	tDouble     = 5
	tTimestamp  = 7
	tLongLong   = 8
	tInt24      = 9
	tDate       = 10
	tTime       = 11
	tDateTime   = 12
	tYear       = 13
	tNewDate    = 14
	tVarchar    = 15
	tBit        = 16
	tTimestamp2 = 17
	tDateTime2  = 18
	tTime2      = 19
	tVector     = 242
	tJSON       = 245
	tNewDecimal = 246
	tEnum       = 247
	tSet        = 248
	tBlob       = 252
	tVarString  = 253
	tString     = 254
	tGeometry   = 255
)

// binaryCharset is the character set of what is no text.
const binaryCharset = "binary"

// LogColumn is a column as a table map with full metadata describes it.
type LogColumn struct {
	Type byte
	// Meta is the column's metadata as a number: of types with two bytes of it the first one is the high one for decimals and
	// strings, the low one for VARCHAR and BIT.
	Meta     uint16
	Unsigned bool
	// Charset is the name of the character set, binary for bytes; of types without one it is not looked at.
	Charset string
	// Labels are the members of an ENUM or SET, in the column's character set.
	Labels [][]byte
	// Known is the source type that the catalog had for the column, empty when it had none: MariaDB's log does not tell a UUID
	// or an address from a BINARY.
	Known string
}

// CatalogColumn is a column as information_schema.columns describes it; numbers that are NULL there are 0.
type CatalogColumn struct {
	DataType         string // varchar
	ColumnType       string // varchar(20)
	OctetLength      uint64
	Precision, Scale int
	Fraction         int    // digits of a second
	Charset          string // empty for what is no text
}

// kind is what cells look like.
type kind uint8

const (
	kInt kind = iota + 1 // and years
	kFloat
	kDouble
	kDecimal
	kBit
	kYear
	kDate
	kTime
	kDateTime
	kTimestamp
	kText
	kBytes
	kEnum
	kSet
	kJSON
	kVector
	kUUID
	kInet
	kOldTime
	kOldDateTime
	kOldTimestamp
)

// Codec is the meaning of one column. Equal codecs read the same cells alike.
type Codec struct {
	kind     kind
	bytes    int // of an integer, bit field, ENUM, SET; the declared length of text and bytes
	prefix   int // bytes of the length before a cell in a row image; 0 for fixed ones
	unsigned bool
	padded   bool // BINARY: to its length, with zeros
	exact    bool // a float that a SELECT would show with fewer digits than it has
	frac     int  // digits of a second
	prec     int
	scale    int
	charset  *charset // of text
	labels   string   // of ENUM and SET, each behind its length
	source   string
}

func unknown(what string) (Codec, error) { return Codec{}, fmt.Errorf("%s: %w", what, ErrUnknown) }

// OfLog resolves a column of a table map.
func OfLog(c LogColumn) (Codec, error) {
	high, low := int(c.Meta>>8), int(c.Meta&0xff)
	switch c.Type {
	case tTiny, tShort, tInt24, tLong, tLongLong:
		return integer(map[byte]int{tTiny: 1, tShort: 2, tInt24: 3, tLong: 4, tLongLong: 8}[c.Type], c.Unsigned), nil
	case tFloat:
		return Codec{kind: kFloat, source: signed("float", c.Unsigned)}, nil
	case tDouble:
		return Codec{kind: kDouble, source: signed("double", c.Unsigned)}, nil
	case tNewDecimal:
		return decimal(high, low, c.Unsigned)
	case tBit:
		return bitField(high*8 + low) // whole bytes, and bits beside them
	case tYear:
		return Codec{kind: kYear, source: "year"}, nil
	case tDate, tNewDate:
		return Codec{kind: kDate, source: "date"}, nil
	case tTime2, tDateTime2, tTimestamp2:
		return temporal(map[byte]kind{tTime2: kTime, tDateTime2: kDateTime, tTimestamp2: kTimestamp}[c.Type], low)
	case tTime, tDateTime, tTimestamp:
		return temporal(map[byte]kind{tTime: kOldTime, tDateTime: kOldDateTime, tTimestamp: kOldTimestamp}[c.Type], 0)
	case tVarchar, tVarString:
		return text("var", int(c.Meta), lengthBytes(int(c.Meta)), c.Charset)
	case tString:
		return ofString(c, high, low)
	case tEnum, tSet:
		return labelled(c.Type == tSet, low, c.Charset, c.Labels)
	case tBlob:
		return text(blobs[low], 0, low, c.Charset)
	case tJSON:
		return Codec{kind: kJSON, prefix: low, source: "json"}, nil
	case tGeometry:
		return Codec{kind: kBytes, prefix: low, source: "geometry"}, nil
	case tVector:
		return Codec{kind: kVector, prefix: low, source: "vector"}, nil
	}
	return unknown("column type " + strconv.Itoa(int(c.Type)) + " of the binary log")
}

// blobs are the words before text and blob, by the bytes of their length.
var blobs = map[int]string{1: "tiny", 2: "", 3: "medium", 4: "long"}

// ofString resolves CHAR, BINARY, ENUM and SET, which share a type; two bits of a length above 255 are kept in it.
func ofString(c LogColumn, high, low int) (Codec, error) {
	length := low
	if high&0x30 != 0x30 {
		length |= ((high & 0x30) ^ 0x30) << 4
		high |= 0x30
	}
	switch high {
	case tEnum, tSet:
		return labelled(high == tSet, length, c.Charset, c.Labels)
	case tString:
		if special, ok := fixedWord(c.Known); ok && special.bytes == length && c.Charset == binaryCharset {
			return special, nil
		}
		return text("fixed", length, lengthBytes(length), c.Charset)
	}
	return unknown("string type " + strconv.Itoa(high) + " of the binary log")
}

// OfCatalog resolves a column of information_schema.
func OfCatalog(c CatalogColumn) (Codec, error) {
	unsigned := strings.Contains(c.ColumnType, " unsigned") || strings.Contains(c.ColumnType, " zerofill")
	words, charset := strings.ToLower(c.DataType), c.Charset
	if charset == "" {
		charset = binaryCharset
	}
	length := int(min(c.OctetLength, 1<<32-1))
	if strings.Contains(c.ColumnType, " COMPRESSED") { // MariaDB's, which the log has compressed
		return unknown("column type " + c.ColumnType)
	}
	if special, ok := fixedWord(words); ok {
		return special, nil
	}
	switch words {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return integer(map[string]int{"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}[words], unsigned), nil
	case "float", "double":
		k := kDouble
		if words == "float" {
			k = kFloat
		}
		return Codec{kind: k, exact: k == kFloat || strings.Contains(c.ColumnType, ","), source: signed(words, unsigned)}, nil
	case "decimal":
		return decimal(c.Precision, c.Scale, unsigned)
	case "bit":
		return bitField(c.Precision)
	case "year":
		return Codec{kind: kYear, source: "year"}, nil
	case "date":
		return Codec{kind: kDate, source: "date"}, nil
	case "time":
		return temporal(kTime, c.Fraction)
	case "datetime":
		return temporal(kDateTime, c.Fraction)
	case "timestamp":
		return temporal(kTimestamp, c.Fraction)
	case "char", "binary":
		return text("fixed", length, lengthBytes(length), charset)
	case "varchar", "varbinary":
		return text("var", length, lengthBytes(length), charset)
	case "tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob":
		size := strings.TrimSuffix(strings.TrimSuffix(words, "text"), "blob")
		for prefix, word := range blobs {
			if word == size {
				return text(size, 0, prefix, charset)
			}
		}
	case "enum", "set":
		labels, err := parseLabels(c.ColumnType)
		if err != nil {
			return Codec{}, err
		}
		size := enumBytes(len(labels))
		if words == "set" {
			size = setBytes(len(labels))
		}
		return utf8Labelled(words == "set", size, labels), nil
	case "json":
		return Codec{kind: kJSON, prefix: 4, source: "json"}, nil
	case "vector":
		return Codec{kind: kVector, prefix: 4, source: "vector"}, nil
	case "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection":
		return Codec{kind: kBytes, prefix: 4, source: "geometry"}, nil
	}
	return unknown("column type " + c.ColumnType)
}

// fixedWord resolves MariaDB's types that the log has as a BINARY.
func fixedWord(word string) (Codec, bool) {
	switch word {
	case "uuid":
		return Codec{kind: kUUID, bytes: 16, prefix: 1, padded: true, source: word}, true
	case "inet6":
		return Codec{kind: kInet, bytes: 16, prefix: 1, padded: true, source: word}, true
	case "inet4":
		return Codec{kind: kInet, bytes: 4, prefix: 1, padded: true, source: word}, true
	}
	return Codec{}, false
}

func signed(word string, unsigned bool) string {
	if unsigned {
		return word + " unsigned"
	}
	return word
}

func integer(bytes int, unsigned bool) Codec {
	word := map[int]string{1: "tinyint", 2: "smallint", 3: "mediumint", 4: "int", 8: "bigint"}[bytes]
	return Codec{kind: kInt, bytes: bytes, unsigned: unsigned, source: signed(word, unsigned)}
}

func decimal(precision, scale int, unsigned bool) (Codec, error) {
	if precision < 1 || precision > 65 || scale < 0 || scale > precision {
		return unknown(fmt.Sprintf("decimal(%d,%d)", precision, scale))
	}
	return Codec{kind: kDecimal, prec: precision, scale: scale, source: signed(fmt.Sprintf("decimal(%d,%d)", precision, scale), unsigned)}, nil
}

func bitField(n int) (Codec, error) {
	if n < 1 || n > 64 {
		return unknown(fmt.Sprintf("bit(%d)", n))
	}
	return Codec{kind: kBit, bytes: (n + 7) / 8, source: fmt.Sprintf("bit(%d)", n)}, nil
}

func temporal(k kind, frac int) (Codec, error) {
	if frac < 0 || frac > 6 {
		return unknown(fmt.Sprintf("fraction of %d digits", frac))
	}
	word := map[kind]string{
		kTime: "time", kDateTime: "datetime", kTimestamp: "timestamp",
		kOldTime: "time", kOldDateTime: "datetime", kOldTimestamp: "timestamp",
	}[k]
	if frac > 0 {
		word = fmt.Sprintf("%s(%d)", word, frac)
	}
	return Codec{kind: k, frac: frac, source: word}, nil
}

func lengthBytes(length int) int {
	if length > 255 {
		return 2
	}
	return 1
}

// text resolves text and bytes; shape is var, fixed or the word before text and blob.
func text(shape string, length, prefix int, name string) (Codec, error) {
	c := Codec{kind: kText, bytes: length, prefix: prefix}
	if prefix < 1 || prefix > 4 {
		return unknown(fmt.Sprintf("a length of %d bytes", prefix))
	}
	if name == binaryCharset {
		c.kind, c.padded = kBytes, shape == "fixed"
		switch shape {
		case "var":
			c.source = fmt.Sprintf("varbinary(%d)", length)
		case "fixed":
			c.source = fmt.Sprintf("binary(%d)", length)
		default:
			c.source = shape + "blob"
		}
		return c, nil
	}
	if c.charset = charsetOf(name); c.charset == nil {
		return unknown("character set " + name)
	}
	switch shape {
	case "var":
		c.source = fmt.Sprintf("varchar(%d)", length/c.charset.widest)
	case "fixed":
		c.source = fmt.Sprintf("char(%d)", length/c.charset.widest)
	default:
		c.source = shape + "text"
	}
	return c, nil
}

// labelled resolves ENUM and SET with members in a character set.
func labelled(set bool, bytes int, name string, labels [][]byte) (Codec, error) {
	cs := charsetOf(name)
	if name == binaryCharset {
		cs = &utf8mb4
	}
	if cs == nil {
		return unknown("character set " + name)
	}
	texts := make([]string, len(labels))
	for i, l := range labels {
		var ok bool
		var text []byte
		if text, ok = cs.decode(nil, l); !ok {
			return Codec{}, fmt.Errorf("member %d of an enumeration: %w", i+1, ErrCell)
		}
		texts[i] = string(text)
	}
	if bytes < 1 || bytes > 8 {
		return unknown(fmt.Sprintf("an enumeration of %d bytes", bytes))
	}
	return utf8Labelled(set, bytes, texts), nil
}

func utf8Labelled(set bool, bytes int, labels []string) Codec {
	c := Codec{kind: kEnum, bytes: bytes}
	word := "enum("
	if set {
		c.kind, word = kSet, "set("
	}
	var b, w strings.Builder
	for i, l := range labels {
		fmt.Fprintf(&b, "%d:%s", len(l), l)
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString("'" + strings.ReplaceAll(l, "'", "''") + "'")
	}
	c.labels, c.source = b.String(), word+w.String()+")"
	return c
}

// members are the labels of an ENUM or SET.
func (c Codec) members() []string {
	var out []string
	for rest := c.labels; rest != ""; {
		n, after, _ := strings.Cut(rest, ":")
		size, _ := strconv.Atoi(n) // written above
		out, rest = append(out, after[:size]), after[size:]
	}
	return out
}

func enumBytes(labels int) int {
	if labels > 255 {
		return 2
	}
	return 1
}

func setBytes(labels int) int {
	if n := (labels + 7) / 8; n <= 4 {
		return max(n, 1)
	}
	return 8
}

// escapes are the letters that the servers write behind a backslash in a list of members.
var escapes = map[byte]byte{'n': '\n', 'r': '\r', '0': 0, '\\': '\\'}

// unescaped undoes what the servers do to a member in the list: whatever the mode of a session, they escape some characters.
func unescaped(l string) string {
	at := strings.IndexByte(l, '\\')
	if at < 0 {
		return l
	}
	var b strings.Builder
	for ; at >= 0 && at+1 < len(l); at = strings.IndexByte(l, '\\') {
		b.WriteString(l[:at])
		c, ok := escapes[l[at+1]]
		if !ok {
			c = l[at+1]
		}
		b.WriteByte(c)
		l = l[at+2:]
	}
	return b.String() + l
}

// parseLabels reads the list of members in enum('a','it\'\'s'); a quote is doubled there.
func parseLabels(s string) ([]string, error) {
	bad := fmt.Errorf("enumeration %q: %w", s, ErrUnknown)
	open := strings.IndexByte(s, '(')
	if open < 0 {
		return nil, bad
	}
	var labels []string
	for s = s[open+1:]; ; s = s[1:] {
		if s == "" || s[0] != '\'' {
			return nil, bad
		}
		var l strings.Builder
		for s = s[1:]; ; s = s[1:] {
			i := strings.IndexByte(s, '\'')
			if i < 0 {
				return nil, bad
			}
			l.WriteString(s[:i])
			s = s[i+1:]
			if s == "" || s[0] != '\'' {
				break
			}
			l.WriteByte('\'')
		}
		labels = append(labels, unescaped(l.String()))
		switch {
		case s == "":
			return nil, bad
		case s[0] == ')':
			return labels, nil
		case s[0] != ',':
			return nil, bad
		}
	}
}

// Type is the logical type of the column.
func (c Codec) Type() rows.Type {
	switch c.kind {
	case kInt:
		k := map[int][2]rows.Kind{
			1: {rows.KindInt8, rows.KindUint8}, 2: {rows.KindInt16, rows.KindUint16}, 3: {rows.KindInt32, rows.KindUint32},
			4: {rows.KindInt32, rows.KindUint32}, 8: {rows.KindInt64, rows.KindUint64},
		}[c.bytes]
		if c.unsigned {
			return rows.Of(k[1])
		}
		return rows.Of(k[0])
	case kFloat:
		return rows.Of(rows.KindFloat32)
	case kDouble:
		return rows.Of(rows.KindFloat64)
	case kDecimal:
		return rows.Decimal(uint8(c.prec), uint8(c.scale))
	case kYear:
		return rows.Of(rows.KindInt16)
	case kDate:
		return rows.Of(rows.KindDate)
	case kTime, kOldTime:
		return rows.Of(rows.KindDuration)
	case kDateTime, kOldDateTime:
		return rows.Of(rows.KindTimestamp)
	case kTimestamp, kOldTimestamp:
		return rows.Of(rows.KindTimestampTZ)
	case kBit, kBytes:
		return rows.Of(rows.KindBytes)
	case kJSON:
		return rows.Of(rows.KindJSON)
	case kVector:
		return rows.List(rows.Of(rows.KindFloat32))
	case kUUID:
		return rows.Of(rows.KindUUID)
	case kText, kEnum, kSet, kInet:
	}
	return rows.Of(rows.KindText)
}

// SourceType is the type in MySQL's words, for rows.Column.Source. What only the catalog knows of a type (a display width,
// the digits of a float, the kind of a geometry) is not in it.
func (c Codec) SourceType() string { return c.source }

// Width is how a cell is found in a row image: of that many bytes, or, negative, behind a length of so many bytes.
func (c Codec) Width() int {
	if c.prefix > 0 {
		return -c.prefix
	}
	switch c.kind {
	case kInt, kBit, kEnum, kSet:
		return c.bytes
	case kYear:
		return 1
	case kDate, kOldTime:
		return 3
	case kFloat, kOldTimestamp:
		return 4
	case kDouble, kOldDateTime:
		return 8
	case kDecimal:
		return decimalBytes(c.prec, c.scale)
	case kTime:
		return 3 + (c.frac+1)/2
	case kDateTime:
		return 5 + (c.frac+1)/2
	case kTimestamp:
		return 4 + (c.frac+1)/2
	case kText, kBytes, kJSON, kVector, kUUID, kInet:
	}
	return -1
}

// Expr is what a SELECT asks for so that cells come in the text form; name is quoted.
func (c Codec) Expr(name string) string {
	switch {
	case c.kind == kEnum, c.kind == kSet:
		return "CAST(" + name + " AS UNSIGNED)" // the number, which is no double as in name+0; members are known here
	case c.exact:
		return "CAST(" + name + " AS DOUBLE)"
	}
	return name
}
