package contract

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// base is what the $id of every schema begins with.
const base = "https://weir.dev/schemas/"

// suffix ends the file name of every schema.
const suffix = ".schema.json"

// Schemas are the schemas of one folder, by name: "head" is head.schema.json. It is safe for concurrent use.
type Schemas struct {
	docs     map[string]map[string]any
	compiled map[string]*jsonschema.Schema
}

// Load reads every schema of a folder.
func Load(dir string) (*Schemas, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	s := &Schemas{docs: make(map[string]map[string]any), compiled: make(map[string]*jsonschema.Schema)}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f, err)
		}
		object, ok := doc.(map[string]any)
		if !ok || object["$id"] != base+filepath.Base(f) {
			return nil, fmt.Errorf("%s: its $id must be %s", f, base+filepath.Base(f))
		}
		if err := compiler.AddResource(base+filepath.Base(f), doc); err != nil {
			return nil, fmt.Errorf("add %s: %w", f, err)
		}
		s.docs[strings.TrimSuffix(filepath.Base(f), suffix)] = object
	}
	// A compiler is for one goroutine, what it makes is for all.
	for name := range s.docs {
		if s.compiled[name], err = compiler.Compile(base + name + suffix); err != nil {
			return nil, fmt.Errorf("compile %s: %w", name, err)
		}
	}
	return s, nil
}

// Names lists the schemas.
func (s *Schemas) Names() []string {
	return slices.Sorted(maps.Keys(s.docs))
}

// Validate checks one JSON document against a schema.
func (s *Schemas) Validate(name string, document []byte) error {
	schema, ok := s.compiled[name]
	if !ok {
		return fmt.Errorf("there is no schema %s", name)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return schema.Validate(doc)
}

// node is a schema with the document it stands in, which its references start from.
type node struct {
	doc    string
	schema map[string]any
}

// at finds a schema by name, or by name and definition: "head", "answer#/$defs/status".
func (s *Schemas) at(ref, from string) (node, error) {
	file, pointer, _ := strings.Cut(ref, "#")
	doc := from
	if file != "" {
		doc = strings.TrimSuffix(path.Base(file), suffix)
	}
	schema, ok := s.docs[doc]
	for key := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if key == "" || !ok {
			continue
		}
		schema, ok = schema[key].(map[string]any)
	}
	if !ok {
		return node{}, fmt.Errorf("no schema %s", ref)
	}
	if next, ok := schema["$ref"].(string); ok {
		return s.at(next, doc)
	}
	return node{doc: doc, schema: schema}, nil
}

// under is the schema of a part; ok is false when the schema says nothing about it.
func (s *Schemas) under(n node, part any) (node, bool, error) {
	schema, ok := part.(map[string]any)
	if !ok {
		return node{}, false, nil
	}
	if ref, ok := schema["$ref"].(string); ok {
		found, err := s.at(ref, n.doc)
		return found, err == nil, err
	}
	return node{doc: n.doc, schema: schema}, true, nil
}

// Properties lists the top-level properties of a schema.
func (s *Schemas) Properties(name string) []string {
	properties, _ := s.docs[name]["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}
