package config

import (
	"fmt"
	"reflect"
	"strconv"
)

// SchemaNoder is implemented by a type that describes its own notation in JSON Schema.
type SchemaNoder interface {
	SchemaNode() map[string]any
}

// Schema returns the JSON Schema (2020-12) of a mapping with this shape. Keys and words that this build refuses are not
// in it.
func (s Shape) Schema() map[string]any {
	properties := make(map[string]any)
	var required []string
	for _, f := range s {
		if f.Refused() {
			continue
		}
		properties[f.Key] = f.schema()
		if f.Required {
			required = append(required, f.Key)
		}
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (f Field) schema() map[string]any {
	out := f.typed(f.Type)
	if f.Doc != "" {
		out["description"] = f.Doc
	}
	if f.Default != "" {
		out["default"] = jsonDefault(f.Default, f.Type)
	}
	return out
}

func (f Field) typed(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return f.typed(t.Elem())
	}
	if sn, ok := reflect.TypeAssert[SchemaNoder](reflect.New(t)); ok {
		return sn.SchemaNode()
	}
	switch t.Kind() {
	case reflect.Struct:
		return ShapeOf(reflect.New(t).Interface()).Schema()
	case reflect.Slice:
		out := map[string]any{"type": "array", "items": f.typed(t.Elem())}
		if f.Required {
			out["minItems"] = 1
		}
		return out
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": f.typed(t.Elem())}
	case reflect.String:
		out := map[string]any{"type": "string"}
		switch {
		case len(f.Enum) > 0:
			out["enum"] = f.Enum
		case f.Pattern != "":
			out["pattern"] = "^(" + f.Pattern + ")$"
		default:
			out["minLength"] = 1
		}
		return out
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		out := map[string]any{"type": "integer"}
		if f.Min != "" {
			out["minimum"] = number(f.Min)
		}
		if f.Max != "" {
			out["maximum"] = number(f.Max)
		}
		return out
	default:
		panic(fmt.Sprintf("C1: a field of type %s has no schema", t))
	}
}

func number(s string) any {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(fmt.Sprintf("C1: bound %q is not a number", s))
	}
	return n
}

func jsonDefault(text string, t reflect.Type) any {
	if _, ok := reflect.TypeAssert[SchemaNoder](reflect.New(t)); ok {
		return text
	}
	switch t.Kind() {
	case reflect.Bool:
		return text == "true"
	case reflect.Slice:
		return words(text)
	case reflect.String:
		return text
	default:
		return number(text)
	}
}
