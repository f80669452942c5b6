package web

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// object is one mapping of a document.
type object map[string]any

// OpenAPI describes the interface; the schemas are those of the types that are answered, so that they cannot differ.
func OpenAPI(version string) map[string]any {
	s := schemas{done: make(map[string]any)}
	name := object{"name": "job", "in": "path", "required": true, "description": "name of the job", "schema": object{"type": "string", "pattern": "^[a-z][a-z0-9-]{0,31}$"}}
	limit := object{"name": "limit", "in": "query", "description": "newest so many", "schema": object{"type": "integer", "minimum": 1, "maximum": progress.MaxEpochs}}
	problem := func(text string) object {
		return object{"description": text, "content": object{"application/problem+json": object{"schema": s.of(reflect.TypeFor[Problem]())}}}
	}
	get := func(id, text string, t reflect.Type, params ...object) object {
		responses := object{
			"200": object{"description": text, "content": object{"application/json": object{"schema": s.of(t)}}},
			"401": problem("no valid token"), "503": problem("the registry was not read lately"),
		}
		op := object{"operationId": id, "summary": text, "responses": responses}
		if len(params) > 0 {
			responses["404"] = problem("no such job")
			op["parameters"] = params
		}
		return object{"get": op}
	}
	events := func(id, text string, params ...object) object {
		path := get(id, text, reflect.TypeFor[Problem](), params...)
		path["get"].(object)["responses"].(object)["200"] = object{ //nolint:forcetypeassert // made above
			"description": text, "content": object{"text/event-stream": object{"schema": object{"type": "string"}}},
		}
		return path
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Weir progress", "version": version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "How far jobs are, each number with its accuracy, and what keeps them from moving. It only reads. Fields are added, never changed.",
		},
		"security": []any{object{}, object{"token": []any{}}},
		"paths": object{
			"/v1/jobs":              get("listJobs", "All jobs", reflect.TypeFor[JobList]()),
			"/v1/jobs/{job}":        get("getJob", "One job with its progress", reflect.TypeFor[progress.Detail](), name),
			"/v1/jobs/{job}/epochs": get("listEpochs", "The newest epochs of a job, newest first", reflect.TypeFor[progress.EpochList](), name, limit),
			"/v1/jobs/{job}/graph":  get("getGraph", "The stages of a job and the links between them", reflect.TypeFor[Picture](), name),
			"/v1/jobs/{job}/events": events("followJob", "Events of one job: job (Update), notice (Notice), gone", name),
			"/v1/events":            events("follow", "Events of all jobs: jobs (JobList), notice (Notice)"),
		},
	}
	s.of(reflect.TypeFor[Update]())
	s.of(reflect.TypeFor[job.Notice]())
	doc["components"] = object{"schemas": s.done, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}}
	return doc
}

// schemas collects the schemas of types by their names.
type schemas struct{ done map[string]any }

// words are the closed sets of texts.
func words(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[report.Accuracy]():
		return texts(report.Exact, report.BestEffort, report.Unsupported, report.Unavailable)
	case reflect.TypeFor[report.Lifecycle]():
		return texts(report.Snapshot, report.CatchUp, report.Incremental, report.Unknown)
	case reflect.TypeFor[report.Recovery]():
		return texts(report.Restoring, report.Restored, report.Steady, report.RecoveryUnknown)
	case reflect.TypeFor[report.Health]():
		return texts(report.Healthy, report.StaleReport, report.NoProgress, report.Stalled, report.HealthUnknown)
	case reflect.TypeFor[progress.Outlook]():
		return texts(progress.OutlookUnknown, progress.Unbounded, progress.NotForeseen, progress.RunsOut)
	case reflect.TypeFor[report.Leg]():
		return texts(report.Reading, report.Waiting, report.Landing)
	case reflect.TypeFor[report.HealthSource]():
		return texts(report.Framework, report.Connector)
	}
	return nil
}

func texts[T ~string](all ...T) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = string(s)
	}
	return out
}

func (s *schemas) of(t reflect.Type) object {
	if get, ok := t.MethodByName("Accuracy"); ok && get.Type.NumIn() == 1 && t.Kind() == reflect.Struct {
		value, _ := t.MethodByName("Get")
		return object{
			"type": "object", "required": []string{"accuracy"}, "description": "a value with its accuracy; absent when there is none",
			"properties": object{"value": s.of(value.Type.Out(0)), "accuracy": s.of(reflect.TypeFor[report.Accuracy]())},
		}
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{}
	case t.Kind() != reflect.Pointer && (t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || t.Implements(reflect.TypeFor[json.Marshaler]())):
		return object{"type": "string"}
	}
	switch t.Kind() { //nolint:exhaustive // the others are in no answer
	case reflect.Pointer:
		return object{"anyOf": []any{s.of(t.Elem()), object{"type": "null"}}}
	case reflect.String:
		if w := words(t); w != nil {
			return object{"enum": w}
		}
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	case reflect.Float64:
		return object{"type": "number"}
	}
	return object{"type": "integer"}
}

// named describes a struct once and refers to it.
func (s *schemas) named(t reflect.Type) object {
	name := t.Name()
	if pkg := t.PkgPath(); !strings.HasSuffix(pkg, "/progress") && !strings.HasSuffix(pkg, "/web") {
		name = strings.ToUpper(pkg[strings.LastIndexByte(pkg, '/')+1:][:1]) + pkg[strings.LastIndexByte(pkg, '/')+2:] + name
	}
	if _, ok := s.done[name]; !ok {
		s.done[name] = nil // a type may hold itself
		properties, required := object{}, map[string]bool{}
		s.fields(t, properties, required)
		o := object{"type": "object", "properties": properties}
		if len(required) > 0 {
			o["required"] = slices.Sorted(maps.Keys(required))
		}
		s.done[name] = o
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (s *schemas) fields(t reflect.Type, properties object, required map[string]bool) {
	for f := range t.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			s.fields(f.Type, properties, required)
		case !f.IsExported() || tag == "-":
		default:
			properties[tag] = s.of(f.Type)
			if !strings.Contains(options, "omit") {
				required[tag] = true
			}
		}
	}
}
