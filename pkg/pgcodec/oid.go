package pgcodec

import (
	"strconv"
	"strings"

	"weir.dev/weir/pkg/rows"
)

// Object identifiers of built-in types; they are fixed in every PostgreSQL (pg_type.dat).
const (
	oidBool        = 16
	oidBytea       = 17
	oidName        = 19
	oidInt8        = 20
	oidInt2        = 21
	oidInt4        = 23
	oidText        = 25
	oidOID         = 26
	oidJSON        = 114
	oidXML         = 142
	oidFloat4      = 700
	oidFloat8      = 701
	oidBpchar      = 1042
	oidVarchar     = 1043
	oidDate        = 1082
	oidTime        = 1083
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidInterval    = 1186
	oidTimetz      = 1266
	oidBit         = 1560
	oidVarbit      = 1562
	oidNumeric     = 1700
	oidUUID        = 2950
	oidJSONB       = 3802
)

// builtin is the SQL name of the types a target of any version knows. Types that are not here (enums, domains,
// composites, extensions) exist only in the source's database.
var builtin = map[uint32]string{
	oidBool: "boolean", oidBytea: "bytea", 18: `"char"`, oidName: "name", oidInt8: "bigint", oidInt2: "smallint",
	oidInt4: "integer", oidText: "text", oidOID: "oid", oidJSON: "json", oidXML: "xml", oidFloat4: "real",
	oidFloat8: "double precision", oidBpchar: "character", oidVarchar: "character varying", oidDate: "date",
	oidTime: "time without time zone", oidTimestamp: "timestamp without time zone",
	oidTimestamptz: "timestamp with time zone", oidInterval: "interval", oidTimetz: "time with time zone",
	oidBit: "bit", oidVarbit: "bit varying", oidNumeric: "numeric", oidUUID: "uuid", oidJSONB: "jsonb",
	790: "money", 829: "macaddr", 774: "macaddr8", 869: "inet", 650: "cidr", 3614: "tsvector", 3615: "tsquery",
	3220: "pg_lsn", 28: "xid", 4072: "jsonpath", 600: "point", 601: "lseg", 602: "path", 603: "box",
	604: "polygon", 628: "line", 718: "circle",
	3904: "int4range", 3926: "int8range", 3906: "numrange", 3908: "tsrange", 3910: "tstzrange", 3912: "daterange",
}

// arrayOf maps the array types of the above to their elements.
var arrayOf = map[uint32]uint32{
	1000: oidBool, 1001: oidBytea, 1002: 18, 1003: oidName, 1016: oidInt8, 1005: oidInt2, 1007: oidInt4, 1009: oidText,
	1028: oidOID, 199: oidJSON, 143: oidXML, 1021: oidFloat4, 1022: oidFloat8, 1014: oidBpchar, 1015: oidVarchar,
	1182: oidDate, 1183: oidTime, 1115: oidTimestamp, 1185: oidTimestamptz, 1187: oidInterval, 1270: oidTimetz,
	1561: oidBit, 1563: oidVarbit, 1231: oidNumeric, 2951: oidUUID, 3807: oidJSONB, 791: 790, 1040: 829, 775: 774,
	1041: 869, 651: 650, 3643: 3614, 3645: 3615, 3221: 3220, 1011: 28, 4073: 4072, 1017: 600, 1018: 601, 1019: 602,
	1020: 603, 1027: 604, 629: 628, 719: 718, 3905: 3904, 3927: 3926, 3907: 3906, 3909: 3908, 3911: 3910, 3913: 3912,
}

// sourceType is the type as format_type prints it; fallback is the name of a type this table does not know.
func sourceType(oid uint32, typmod int32, fallback string) string {
	if elem, ok := arrayOf[oid]; ok {
		return sourceType(elem, typmod, fallback) + "[]"
	}
	name, ok := builtin[oid]
	if !ok {
		return fallback
	}
	if typmod < 0 {
		if oid == oidBpchar {
			return "bpchar" // character without a length means character(1)
		}
		return name
	}
	switch oid {
	case oidNumeric:
		precision, scale := numericTypmod(typmod)
		return "numeric(" + strconv.Itoa(precision) + "," + strconv.Itoa(scale) + ")"
	case oidBpchar, oidVarchar:
		return name + "(" + strconv.Itoa(int(typmod)-4) + ")"
	case oidBit, oidVarbit:
		return name + "(" + strconv.Itoa(int(typmod)) + ")"
	case oidTime, oidTimestamp, oidTimestamptz, oidTimetz:
		word, rest, _ := strings.Cut(name, " ")
		return word + "(" + strconv.Itoa(int(typmod)) + ") " + rest
	}
	return name // interval's fields and precision narrow its values only; the plain type holds them
}

// numericTypmod takes a numeric's modifier apart; the scale may be negative or above the precision since version 15.
func numericTypmod(typmod int32) (precision, scale int) {
	m := typmod - 4
	return int(m>>16) & 0xffff, int((m&0x7ff)^1024) - 1024
}

// logicalType chooses the logical type of a server type.
func logicalType(oid uint32, typmod int32) rows.Type {
	switch oid {
	case oidBool:
		return rows.Of(rows.KindBool)
	case oidInt2:
		return rows.Of(rows.KindInt16)
	case oidInt4:
		return rows.Of(rows.KindInt32)
	case oidInt8:
		return rows.Of(rows.KindInt64)
	case oidOID:
		return rows.Of(rows.KindUint32)
	case oidFloat4:
		return rows.Of(rows.KindFloat32)
	case oidFloat8:
		return rows.Of(rows.KindFloat64)
	case oidNumeric:
		p, s := numericTypmod(typmod)
		if typmod < 0 || p < 1 || p > rows.MaxDecimalPrecision || s < 0 || s > p {
			return rows.Of(rows.KindDecimalText)
		}
		return rows.Decimal(uint8(p), uint8(s))
	case oidBytea:
		return rows.Of(rows.KindBytes)
	case oidDate:
		return rows.Of(rows.KindDate)
	case oidTime:
		return rows.Of(rows.KindTime)
	case oidTimestamp:
		return rows.Of(rows.KindTimestamp)
	case oidTimestamptz:
		return rows.Of(rows.KindTimestampTZ)
	case oidUUID:
		return rows.Of(rows.KindUUID)
	case oidJSON, oidJSONB:
		return rows.Of(rows.KindJSON)
	}
	return rows.Of(rows.KindText)
}
