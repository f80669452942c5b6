package spec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/spec"
)

func TestSchemaIsInStep(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "..", "schemas", "job.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if string(file) != string(spec.Schema()) {
		t.Fatal("schemas/job.schema.json is not what the parser reads; run: go generate ./spec")
	}
}

// S5: what the parser accepts, the schema accepts.
func TestSchemaAcceptsGoodSpecs(t *testing.T) {
	schema := schemaOf(t)
	for _, text := range append(goodSpecs(), full, string(parse(t, full).Canonical())) {
		root, problems := config.Parse([]byte(text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if err := valid(schema, root); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// S5: every key of the schema is accepted by the parser and no other key is accepted by either.
func TestSchemaAndParserKnowTheSameKeys(t *testing.T) {
	schema := schemaOf(t)
	root, _ := config.Parse(parse(t, full).Canonical())
	used := make(map[string]bool)
	walk(schema, root, func(s map[string]any, n *config.Node) {
		for key := range s["properties"].(map[string]any) {
			if n.Get(key) != nil {
				used[title(s)+"."+key] = true
			}
		}
		// A key that neither knows.
		n.Entries = append(n.Entries, config.Entry{Key: &config.Node{Kind: config.String, Text: "zzz"}, Value: config.Word("x")})
		if _, err := spec.Parse(root.JSON(), ""); err == nil || !strings.Contains(err.Error(), `"zzz"`) && !strings.Contains(err.Error(), "zzz: ") {
			t.Errorf("the parser accepts zzz in %s: %v", n.JSON(), err)
		}
		if valid(schema, root) == nil {
			t.Errorf("the schema accepts zzz in %s", n.JSON())
		}
		n.Entries = n.Entries[:len(n.Entries)-1]
	})
	walk(schema, root, func(s map[string]any, _ *config.Node) {
		for key := range s["properties"].(map[string]any) {
			if !used[title(s)+"."+key] {
				t.Errorf("key %s.%s of the schema is not exercised by the full spec", title(s), key)
			}
		}
	})
}

func TestSchemaRefuses(t *testing.T) {
	schema := schemaOf(t)
	for _, change := range [][2]string{
		{"weir/v1", "weir/v2"},
		{"job: shop", "job: Shop"},
		{"mode: changelog", "mode: upset"},
		{"format: jsonl", "format: csv"},
		{"readers: 2", "readers: two"},
		{"interval: 200ms", "interval: 200"},
		{"type: blackhole", "type: nats"},
		{`"public.*"`, "public"},
	} {
		root, _ := config.Parse([]byte(strings.Replace(full, change[0], change[1], 1)))
		if valid(schema, root) == nil {
			t.Errorf("the schema accepts %s", change[1])
		}
	}
}

func schemaOf(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(spec.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func title(s map[string]any) string {
	name, _ := s["title"].(string)
	return name
}

// walk visits every mapping with the schema that describes it.
func walk(s map[string]any, n *config.Node, f func(map[string]any, *config.Node)) {
	if one, ok := s["oneOf"].([]any); ok {
		for _, o := range one {
			if valid(o.(map[string]any), n) == nil {
				walk(o.(map[string]any), n, f)
			}
		}
		return
	}
	properties, ok := s["properties"].(map[string]any)
	if ok {
		f(s, n)
	}
	for _, e := range n.Entries {
		if p, ok := properties[e.Key.Text].(map[string]any); ok {
			walk(p, e.Value, f)
		} else if extra, ok := s["additionalProperties"].(map[string]any); ok {
			walk(extra, e.Value, f)
		}
	}
}

// valid checks the part of JSON Schema that the generator uses.
func valid(s map[string]any, n *config.Node) error {
	bad := func(what string) error { return fmt.Errorf("%s: %s", n.Path, what) }
	if one, ok := s["oneOf"].([]any); ok {
		fits := 0
		for _, o := range one {
			if valid(o.(map[string]any), n) == nil {
				fits++
			}
		}
		if fits != 1 {
			return bad("fits not exactly one kind")
		}
		return nil
	}
	if c, ok := s["const"].(string); ok && n.Text != c {
		return bad("not the constant " + c)
	}
	kinds := map[string][]config.Kind{
		"object": {config.Map}, "array": {config.List}, "string": {config.String}, "boolean": {config.Bool},
		"integer": {config.Int}, "number": {config.Int, config.Float},
	}
	if t, ok := s["type"].(string); ok && !slices.Contains(kinds[t], n.Kind) {
		return bad("not of type " + t)
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, any(n.Text)) {
		return bad("not in the enumeration")
	}
	if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(n.Text) {
		return bad("does not match " + p)
	}
	if items, ok := s["items"].(map[string]any); ok {
		for _, item := range n.Items {
			if err := valid(items, item); err != nil {
				return err
			}
		}
	}
	required, _ := s["required"].([]any)
	for _, key := range required {
		if n.Get(key.(string)) == nil {
			return bad("lacks " + key.(string))
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, e := range n.Entries {
		var next map[string]any
		if p, ok := properties[e.Key.Text].(map[string]any); ok {
			next = p
		} else if extra, ok := s["additionalProperties"].(map[string]any); ok {
			next = extra
		} else {
			return bad("unknown key " + e.Key.Text)
		}
		if err := valid(next, e.Value); err != nil {
			return err
		}
	}
	return nil
}
