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
	oidBox         = 603
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
	oidRefcursor   = 1790
	oidUUID        = 2950
	oidJSONB       = 3802
)

// builtin is the SQL name of the types that mean the same on another server. Types that are not here (enums, domains,
// composites, extensions) exist only in the source's database; so do the objects and roles that regclass, regtype,
// aclitem and their like name.
var builtin = map[uint32]string{
	oidBool: "boolean", oidBytea: "bytea", 18: `"char"`, oidName: "name", oidInt8: "bigint", oidInt2: "smallint",
	oidInt4: "integer", oidText: "text", oidOID: "oid", oidJSON: "json", oidXML: "xml", oidFloat4: "real",
	oidFloat8: "double precision", oidBpchar: "character", oidVarchar: "character varying", oidDate: "date",
	oidTime: "time without time zone", oidTimestamp: "timestamp without time zone",
	oidTimestamptz: "timestamp with time zone", oidInterval: "interval", oidTimetz: "time with time zone",
	oidBit: "bit", oidVarbit: "bit varying", oidNumeric: "numeric", oidUUID: "uuid", oidJSONB: "jsonb",
	oidRefcursor: "refcursor", oidBox: "box",
	22: "int2vector", 27: "tid", 28: "xid", 29: "cid", 30: "oidvector", 790: "money", 829: "macaddr", 774: "macaddr8",
	869: "inet", 650: "cidr", 3614: "tsvector", 3615: "tsquery", 3220: "pg_lsn", 4072: "jsonpath", 5069: "xid8",
	2970: "txid_snapshot", 5038: "pg_snapshot", 600: "point", 601: "lseg", 602: "path", 604: "polygon", 628: "line",
	718: "circle", 3904: "int4range", 3926: "int8range", 3906: "numrange", 3908: "tsrange", 3910: "tstzrange",
	3912: "daterange", 4451: "int4multirange", 4536: "int8multirange", 4532: "nummultirange", 4533: "tsmultirange",
	4534: "tstzmultirange", 4535: "datemultirange",
}

// arrayOf maps the array types of the above to their elements.
var arrayOf = map[uint32]uint32{
	1000: oidBool, 1001: oidBytea, 1002: 18, 1003: oidName, 1016: oidInt8, 1005: oidInt2, 1007: oidInt4, 1009: oidText,
	1028: oidOID, 199: oidJSON, 143: oidXML, 1021: oidFloat4, 1022: oidFloat8, 1014: oidBpchar, 1015: oidVarchar,
	1182: oidDate, 1183: oidTime, 1115: oidTimestamp, 1185: oidTimestamptz, 1187: oidInterval, 1270: oidTimetz,
	1561: oidBit, 1563: oidVarbit, 1231: oidNumeric, 2951: oidUUID, 3807: oidJSONB, 2201: oidRefcursor, 1020: oidBox,
	1006: 22, 1010: 27, 1011: 28, 1012: 29, 1013: 30, 791: 790, 1040: 829, 775: 774, 1041: 869, 651: 650, 3643: 3614,
	3645: 3615, 3221: 3220, 4073: 4072, 271: 5069, 2949: 2970, 5039: 5038, 1017: 600, 1018: 601, 1019: 602, 1027: 604,
	629: 628, 719: 718, 3905: 3904, 3927: 3926, 3907: 3906, 3909: 3908, 3911: 3910, 3913: 3912, 6150: 4451, 6157: 4536,
	6151: 4532, 6152: 4533, 6153: 4534, 6155: 4535,
}

// sourceType is the type as format_type prints it; fallback is the name of a type this table does not know.
func sourceType(oid uint32, typmod int32, fallback string) string {
	name, ok := builtin[oid]
	if !ok {
		return fallback
	}
	if typmod < 0 {
		switch oid { // without a length, these two words mean a length of 1
		case oidBpchar:
			return "bpchar"
		case oidBit:
			return `"bit"`
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
