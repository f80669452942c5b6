package config

import (
	"maps"
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

// Overlay sets the leaves of the targets from the variables of a service. Lists are split at commas. A variable with
// [Prefix] that belongs neither to a setting nor to one of the other services is a problem (C1): a misspelt setting must
// not be silent. unknown counts those among the problems.
func Overlay(in Input, targets ...any) (problems []fault.Problem, unknown int) {
	leaves := collectAll(in.Service, targets)
	d := Decoder{}
	for _, kv := range slices.Sorted(slices.Values(in.Environ)) {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		if l, ok := leaves[name]; ok {
			n := scalar(value, l.value.Type())
			n.Path = name
			d.value(n, l.value, l.field)
			continue
		}
		foreign := func(s string) bool { return s != in.Service && strings.HasPrefix(name, EnvName(s, "")) }
		if !slices.ContainsFunc(in.Others, foreign) {
			unknown++
			d.Report(&Node{Path: name}, fault.Problem{
				What:    "the variable names no setting",
				Suggest: Nearest(name, EnvNames(in.Service, targets...)),
			})
		}
	}
	return d.Problems, unknown
}

// EnvNames returns the variables of all settings of the targets, sorted.
func EnvNames(service string, targets ...any) []string {
	return slices.Sorted(maps.Keys(collectAll(service, targets)))
}

func collectAll(service string, targets []any) map[string]leaf {
	leaves := make(map[string]leaf)
	for _, t := range targets {
		collect(reflect.ValueOf(t).Elem(), service, "", leaves)
	}
	return leaves
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
		name := EnvName(service, at)
		if _, taken := out[name]; taken {
			panic("C1: two settings have the variable " + name)
		}
		out[name] = leaf{value: field, field: f}
	}
}
