package contract

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Match compares a Go type with a schema: "head", or one of its definitions, "answer#/$defs/status". All differences are
// joined.
func (s *Schemas) Match(ref string, t reflect.Type) error {
	n, err := s.at(ref, "")
	if err != nil {
		return err
	}
	return s.match(n, t, ref)
}

// field is how a struct's field is written.
type field struct {
	typ      reflect.Type
	optional bool
}

// fieldsOf lists the fields of a struct by their JSON names; embedded structs are flattened as encoding/json does.
func fieldsOf(t reflect.Type) map[string]field {
	fields := make(map[string]field)
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			maps.Copy(fields, fieldsOf(f.Type))
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}
		fields[name] = field{typ: f.Type, optional: strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")}
	}
	return fields
}

func (s *Schemas) match(n node, t reflect.Type, at string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value, ok := valueOf(t); ok {
		return s.matchPart(n, property(n, "value"), value, at+".value")
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[time.Duration](), opaque(t):
		return nil
	case t.Kind() == reflect.Struct:
		return s.matchStruct(n, t, at)
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return s.matchPart(n, n.schema["items"], t.Elem(), at+"[]")
	case t.Kind() == reflect.Map:
		return s.matchPart(n, n.schema["additionalProperties"], t.Elem(), at+"{}")
	}
	return nil
}

func (s *Schemas) matchPart(n node, part any, t reflect.Type, at string) error {
	below, ok, err := s.under(n, part)
	if err != nil || !ok {
		return errors.Join(err, missing(!ok && err == nil, at))
	}
	return s.match(below, t, at)
}

func missing(is bool, at string) error {
	if is {
		return fmt.Errorf("%s: the schema does not describe it", at)
	}
	return nil
}

func (s *Schemas) matchStruct(n node, t reflect.Type, at string) error {
	var errs []error
	fields := fieldsOf(t)
	properties, _ := n.schema["properties"].(map[string]any)
	required, _ := n.schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if _, ok := fields[name]; !ok {
			errs = append(errs, fmt.Errorf("%s.%s: in the schema, not in %s", at, name, t))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		part, ok := properties[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s.%s: in %s, not in the schema", at, name, t))
			continue
		}
		if got := slices.Contains(required, any(name)); got == f.optional {
			errs = append(errs, fmt.Errorf("%s.%s: required is %t in the schema, left out when empty is %t in %s", at, name, got, f.optional, t))
		}
		errs = append(errs, s.matchPart(n, part, f.typ, at+"."+name))
	}
	return errors.Join(errs...)
}

func property(n node, name string) any {
	properties, _ := n.schema["properties"].(map[string]any)
	return properties[name]
}

// valueOf recognises report.Value: a value with its accuracy. The package is not imported, because its own tests use
// this one.
func valueOf(t reflect.Type) (reflect.Type, bool) {
	get, ok := t.MethodByName("Get")
	if _, accuracy := t.MethodByName("Accuracy"); !ok || !accuracy || get.Type.NumOut() != 2 {
		return nil, false
	}
	return get.Type.Out(0), true
}

// opaque reports whether the type writes itself.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}
