package spec

import (
	"encoding/json"

	"weir.dev/weir/pkg/config"
)

// SchemaID is the address of the JSON Schema.
const SchemaID = "https://weir.dev/schemas/job.schema.json"

// Modeline is the first line of a spec file; editors with a YAML language server then check and complete it.
const Modeline = "# yaml-language-server: $schema=" + SchemaID

// Schema returns the JSON Schema (2020-12) of a job spec, indented, with a trailing newline. It describes the keys and
// words of this build.
func Schema() []byte {
	s := config.ShapeOf(Job{}).Schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = SchemaID
	s["title"] = "Weir job spec"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("S5: " + err.Error())
	}
	return append(out, '\n')
}

const namePattern = "^[a-z][a-z0-9-]{0,31}$"

// SchemaNode describes a mapping of named sources.
func (Sources) SchemaNode() map[string]any {
	var kinds []any
	for _, k := range sourceKinds() {
		if k.make != nil {
			kinds = append(kinds, typed(k.shape(), k.word))
		}
	}
	return named(kinds)
}

// SchemaNode describes a mapping of named sinks.
func (Sinks) SchemaNode() map[string]any {
	var kinds []any
	for _, k := range sinkKinds() {
		if k.make != nil {
			kinds = append(kinds, typed(k.shape(), k.word))
		}
	}
	return named(kinds)
}

func named(kinds []any) map[string]any {
	return map[string]any{
		"type":                 "object",
		"minProperties":        1,
		"propertyNames":        map[string]any{"pattern": namePattern},
		"additionalProperties": map[string]any{"oneOf": kinds},
	}
}

func typed(shape config.Shape, word string) map[string]any {
	s := shape.Schema()
	s["properties"].(map[string]any)["type"] = map[string]any{"const": word}
	required, _ := s["required"].([]string)
	s["required"] = append([]string{"type"}, required...)
	s["title"] = word
	return s
}
