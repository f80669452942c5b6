package pgcodec

import (
	"strconv"
	"strings"

	"weir.dev/weir/pkg/rows"
)

// Origin is what a PostgreSQL source passes to rows.NewSchema.
const Origin = "postgres"

// SQLType is the type of a target column for c: the source's own type when the source is PostgreSQL and the type is built
// in, so that it exists at the target too; else the narrowest type that holds every value.
func SQLType(c rows.Column, origin string) string {
	if origin == Origin && isBuiltin(c.Source) {
		return c.Source
	}
	return sqlTypeOf(c.Type)
}

// UserType is the name of c's type where it is one that the source's database made for itself, qualified as the source
// has it; empty for every other column. A target that has a type of that name can take it; else SQLType holds its text.
func UserType(c rows.Column, origin string) string {
	// Without a schema it is one of pg_catalog's that names objects of the source: regclass, aclitem.
	if origin == Origin && strings.Contains(c.Source, ".") && !isBuiltin(c.Source) {
		return c.Source
	}
	return ""
}

// StageType is the type whose binary form BindField writes for c. Where it is not the target column's own type the
// statement that moves rows from the stage to the target casts.
func StageType(c rows.Column) string {
	switch {
	case stageJSONB(c):
		return "jsonb"
	case c.Type.Kind == rows.KindDecimal:
		return "numeric"
	case c.Type.Kind == rows.KindList:
		return "text"
	}
	return sqlTypeOf(c.Type)
}

func stageJSONB(c rows.Column) bool { return c.Type.Kind == rows.KindJSON && c.Source == "jsonb" }

func sqlTypeOf(t rows.Type) string {
	switch t.Kind {
	case rows.KindBool:
		return "boolean"
	case rows.KindInt8, rows.KindUint8, rows.KindInt16:
		return "smallint"
	case rows.KindUint16, rows.KindInt32:
		return "integer"
	case rows.KindUint32, rows.KindInt64:
		return "bigint"
	case rows.KindUint64:
		return "numeric(20,0)"
	case rows.KindFloat32:
		return "real"
	case rows.KindFloat64:
		return "double precision"
	case rows.KindDecimal:
		return "numeric(" + strconv.Itoa(int(t.Precision)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case rows.KindDecimalText:
		return "numeric"
	case rows.KindBytes:
		return "bytea"
	case rows.KindDate:
		return "date"
	case rows.KindTime:
		return "time without time zone"
	case rows.KindDuration:
		return "interval"
	case rows.KindTimestamp:
		return "timestamp without time zone"
	case rows.KindTimestampTZ:
		return "timestamp with time zone"
	case rows.KindUUID:
		return "uuid"
	case rows.KindJSON:
		return "json"
	case rows.KindList:
		return sqlTypeOf(t.ElemType()) + "[]"
	case rows.KindText:
	}
	return "text"
}

// isBuiltin reports whether a type as sourceType writes it names a built-in type: it is compared without its
// modifier and array mark.
func isBuiltin(source string) bool {
	s := strings.TrimSuffix(source, "[]")
	if from := strings.IndexByte(s, '('); from >= 0 {
		to := strings.IndexByte(s, ')')
		if to < from {
			return false
		}
		s = s[:from] + s[to+1:]
	}
	if s == "bpchar" || s == `"bit"` {
		return true
	}
	for _, name := range builtin {
		if s == name {
			return true
		}
	}
	return false
}
