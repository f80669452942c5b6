package config

import (
	"reflect"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
)

// Prefix begins the name of every environment variable that is a setting.
const Prefix = "WEIR_"

// EnvName returns the variable of a setting: EnvName("cdc-postgres", "http.addr") is WEIR_CDC_POSTGRES_HTTP_ADDR.
func EnvName(service, path string) string {
	return Prefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(service+"_"+path))
}

// Overlay sets the leaves of target, a pointer to a struct, from the variables of a service in env (as os.Environ gives
// them). Lists are split at commas. A variable with [Prefix] that belongs neither to a setting nor to one of the other
// services is a problem (C1): a misspelt setting must not be silent.
func Overlay(target any, service string, others, env []string) []fault.Problem {
	leaves := make(map[string]leaf)
	collect(reflect.ValueOf(target).Elem(), service, "", leaves)
	d := Decoder{}
	for _, kv := range slices.Sorted(slices.Values(env)) {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		l, ok := leaves[name]
		switch {
		case ok:
			n := scalar(value, l.value.Type())
			n.Path = name
			d.value(n, l.value, l.field)
		case !slices.ContainsFunc(others, func(s string) bool { return s != service && strings.HasPrefix(name, EnvName(s, "")) }):
			n := &Node{Path: name, Text: name}
			p := fault.Problem{What: "the variable names no setting", Suggest: Nearest(name, EnvNames(target, service))}
			d.Report(n, p)
		}
	}
	return d.Problems
}

// EnvNames returns the variables of all settings of target, sorted.
func EnvNames(target any, service string) []string {
	leaves := make(map[string]leaf)
	collect(reflect.ValueOf(target).Elem(), service, "", leaves)
	names := make([]string, 0, len(leaves))
	for name := range leaves {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

type leaf struct {
	value reflect.Value
	field Field
}

func collect(v reflect.Value, service, path string, out map[string]leaf) {
	for _, f := range ShapeOf(v.Addr().Interface()) {
		if f.Refused() {
			continue
		}
		field, at := v.Field(f.index), strings.TrimPrefix(path+"."+f.Key, ".")
		if field.Kind() == reflect.Struct && !implements(field) {
			collect(field, service, at, out)
			continue
		}
		if field.Kind() == reflect.Map {
			continue
		}
		out[EnvName(service, at)] = leaf{value: field, field: f}
	}
}
