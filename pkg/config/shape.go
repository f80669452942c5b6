package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Field is one key of a format, as its struct tags describe it.
type Field struct {
	Key      string
	Type     reflect.Type
	Required bool
	Default  string   // "" when there is none
	Enum     []string // allowed words; of the elements when Type is a list
	Later    []string // known words that this build refuses; {"true"}: the whole key
	Min, Max string   // bounds, in the notation of the field
	Pattern  string   // regular expression over the whole text
	Hint     string   // the pattern in words
	Doc      string

	part  int // which of the decoded structs
	index int // which field of it
}

// Refused reports whether the key as a whole is known but not in this build.
func (f Field) Refused() bool { return len(f.Later) == 1 && f.Later[0] == "true" }

// Shape is the set of keys of one mapping, in the order of declaration.
type Shape []Field

// ShapeOf returns the keys of one or more structs (or pointers to structs) that share a mapping. It panics when a type
// is not a struct or two fields have one key, which its package's tests would show.
func ShapeOf(parts ...any) Shape {
	var s Shape
	seen := make(map[string]bool)
	for p, part := range parts {
		t := reflect.TypeOf(part)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		for i := range t.NumField() {
			f, ok := fieldOf(t.Field(i))
			if !ok && t.Field(i).Anonymous {
				panic(fmt.Sprintf("C1: the settings of %s, embedded in %s, would have no keys", t.Field(i).Name, t.Name()))
			}
			if !ok {
				continue
			}
			if seen[f.Key] {
				panic(fmt.Sprintf("C1: key %q is declared twice", f.Key))
			}
			seen[f.Key] = true
			f.part, f.index = p, i
			s = append(s, f)
		}
	}
	return s
}

func fieldOf(sf reflect.StructField) (Field, bool) {
	tag, ok := sf.Tag.Lookup("yaml")
	if !ok || tag == "-" {
		return Field{}, false
	}
	key, option, _ := strings.Cut(tag, ",")
	return Field{
		Key:      key,
		Type:     sf.Type,
		Required: option == "required",
		Default:  sf.Tag.Get("default"),
		Enum:     words(sf.Tag.Get("enum")),
		Later:    words(sf.Tag.Get("later")),
		Min:      sf.Tag.Get("min"),
		Max:      sf.Tag.Get("max"),
		Pattern:  sf.Tag.Get("pattern"),
		Hint:     sf.Tag.Get("hint"),
		Doc:      sf.Tag.Get("doc"),
	}, true
}

func words(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// With returns a copy in which change has been applied to the field with this key.
func (s Shape) With(key string, change func(*Field)) Shape {
	out := append(Shape(nil), s...)
	for i := range out {
		if out[i].Key == key {
			change(&out[i])
		}
	}
	return out
}

// Find returns the field with this key.
func (s Shape) Find(key string) (Field, bool) {
	for _, f := range s {
		if f.Key == key {
			return f, true
		}
	}
	return Field{}, false
}

// keys returns the keys that this build accepts.
func (s Shape) keys() []string {
	var out []string
	for _, f := range s {
		if !f.Refused() {
			out = append(out, f.Key)
		}
	}
	return out
}
