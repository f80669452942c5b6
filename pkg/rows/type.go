package rows

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the family of a logical type. The numbers are not a wire form: metadata carries the type's text.
type Kind uint8

// The kinds, each with the Arrow type that holds it.
const (
	KindBool        Kind = iota + 1 // bool
	KindInt8                        // int8
	KindInt16                       // int16
	KindInt32                       // int32
	KindInt64                       // int64
	KindUint8                       // uint8
	KindUint16                      // uint16
	KindUint32                      // uint32
	KindUint64                      // uint64
	KindFloat32                     // float32, NaN and infinities included
	KindFloat64                     // float64, NaN and infinities included
	KindDecimal                     // decimal128 up to 38 digits, decimal256 up to 76
	KindDecimalText                 // utf8: an exact number without a declared precision
	KindText                        // utf8
	KindBytes                       // binary
	KindDate                        // date32, proleptic Gregorian
	KindTime                        // time64[us], 00:00:00 to 23:59:59.999999
	KindDuration                    // duration[us], signed (MySQL TIME)
	KindTimestamp                   // timestamp[us] without a zone
	KindTimestampTZ                 // timestamp[us, UTC]
	KindUUID                        // fixed_size_binary(16)
	KindJSON                        // utf8, the source's own text
	KindList                        // list of one of the kinds above
)

// MaxDecimalPrecision is the number of digits of the widest decimal type; wider ones are KindDecimalText.
const MaxDecimalPrecision = 76

var kindNames = [...]string{
	KindBool: "bool", KindInt8: "int8", KindInt16: "int16", KindInt32: "int32", KindInt64: "int64",
	KindUint8: "uint8", KindUint16: "uint16", KindUint32: "uint32", KindUint64: "uint64",
	KindFloat32: "float32", KindFloat64: "float64", KindDecimal: "decimal", KindDecimalText: "decimal_text",
	KindText: "text", KindBytes: "bytes", KindDate: "date", KindTime: "time", KindDuration: "duration",
	KindTimestamp: "timestamp", KindTimestampTZ: "timestamptz", KindUUID: "uuid", KindJSON: "json", KindList: "list",
}

// String gives the kind's word, for example timestamptz.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Type is a logical type. It is comparable; two equal types have one Arrow type and one canonical form.
// The zero Type is invalid.
type Type struct {
	Kind Kind
	// Precision and Scale belong to KindDecimal, or to the elements of a list of decimals:
	// 1 <= Precision <= MaxDecimalPrecision and 0 <= Scale <= Precision.
	Precision, Scale uint8
	// Elem is the kind of a list's elements; lists do not nest.
	Elem Kind
}

// Of is the type of a kind that takes no parameters.
func Of(k Kind) Type { return Type{Kind: k} }

// Decimal is the exact number with precision digits, scale of them after the point.
func Decimal(precision, scale uint8) Type {
	return Type{Kind: KindDecimal, Precision: precision, Scale: scale}
}

// List is the list of elements of type elem.
func List(elem Type) Type {
	return Type{Kind: KindList, Precision: elem.Precision, Scale: elem.Scale, Elem: elem.Kind}
}

// ElemType is the type of a list's elements, the zero Type for any other kind.
func (t Type) ElemType() Type {
	if t.Kind != KindList {
		return Type{}
	}
	return Type{Kind: t.Elem, Precision: t.Precision, Scale: t.Scale}
}

// Validate reports why t is not a type.
func (t Type) Validate() error {
	switch {
	case t.Kind < KindBool || t.Kind > KindList:
		return fmt.Errorf("type %v: unknown kind", t.Kind)
	case t.Kind == KindList:
		if t.Elem == KindList {
			return fmt.Errorf("type %v: lists do not nest", t)
		}
		return t.ElemType().Validate()
	case t.Elem != 0:
		return fmt.Errorf("type %v: only a list has elements", t.Kind)
	case t.Kind != KindDecimal && (t.Precision != 0 || t.Scale != 0):
		return fmt.Errorf("type %v: only a decimal has a precision", t.Kind)
	case t.Kind == KindDecimal && (t.Precision < 1 || t.Precision > MaxDecimalPrecision || t.Scale > t.Precision):
		return fmt.Errorf("type %v: precision is 1 to %d, scale 0 to precision", t, MaxDecimalPrecision)
	}
	return nil
}

// String gives the text that schema metadata carries: int32, decimal(10,2), list<text>. ParseType reads it.
func (t Type) String() string {
	switch t.Kind {
	case KindDecimal:
		return "decimal(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case KindList:
		return "list<" + t.ElemType().String() + ">"
	default:
		return t.Kind.String()
	}
}

// ParseType reads what Type.String wrote.
func ParseType(s string) (Type, error) {
	if elem, ok := strings.CutPrefix(s, "list<"); ok && strings.HasSuffix(elem, ">") {
		e, err := ParseType(strings.TrimSuffix(elem, ">"))
		if err != nil {
			return Type{}, err
		}
		t := List(e)
		return t, t.Validate()
	}
	if args, ok := strings.CutPrefix(s, "decimal("); ok && strings.HasSuffix(args, ")") {
		p, sc, _ := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		precision, err1 := strconv.ParseUint(p, 10, 8)
		scale, err2 := strconv.ParseUint(sc, 10, 8)
		t := Decimal(uint8(precision), uint8(scale))
		if err1 != nil || err2 != nil || t.String() != s {
			return Type{}, fmt.Errorf("type %q: not decimal(precision,scale)", s)
		}
		return t, t.Validate()
	}
	for k := KindBool; k < KindList; k++ {
		if k != KindDecimal && kindNames[k] == s {
			return Of(k), nil
		}
	}
	return Type{}, fmt.Errorf("type %q: unknown", s)
}
