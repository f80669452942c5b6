package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"weir.dev/weir/pkg/fault"
)

// Kind is the shape of a [Node].
type Kind uint8

// The kinds. A scalar's kind follows the core schema of YAML 1.2: yes and on are strings.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// String returns the word used in problems.
func (k Kind) String() string {
	return [...]string{"nothing", "a boolean", "a whole number", "a number", "a text", "a list", "a mapping"}[k]
}

// Node is one value of a parsed text.
type Node struct {
	Kind    Kind
	Line    int // from 1; 0 when the node does not come from a text
	Column  int // from 1, in characters
	Path    string
	Text    string // a scalar's value, unquoted
	Items   []*Node
	Entries []Entry
}

// Entry is one key of a mapping, in the order of the text.
type Entry struct {
	Key   *Node // Kind String; Path is the path of the value
	Value *Node
}

// Get returns the value of a key of a mapping, or nil.
func (n *Node) Get(key string) *Node {
	for _, e := range n.Entries {
		if e.Key.Text == key {
			return e.Value
		}
	}
	return nil
}

// Limits of a text. They bound the work that a hostile text can cause, far above any real configuration.
const (
	maxText  = 1 << 20
	maxDepth = 64
)

// Parse reads one YAML document. JSON is YAML, so it reads that too. The node is nil when the text is empty or cannot be
// read; the problems then say why.
func Parse(data []byte) (*Node, []fault.Problem) {
	if len(data) > maxText {
		return nil, []fault.Problem{{Line: 1, Column: 1, What: fmt.Sprintf("the text is longer than %s", Bytes(maxText))}}
	}
	if line, ok := tooDeep(data); ok {
		return nil, []fault.Problem{{Line: line, Column: 1, What: "brackets are nested too deeply"}}
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, []fault.Problem{syntaxProblem(err)}
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) == 0 {
		return nil, []fault.Problem{{Line: 1, Column: 1, What: "the text is empty"}}
	}
	b := builder{}
	root := b.node(bodies[0], "", 0)
	if len(bodies) > 1 {
		b.problem(bodies[1], "", "a file holds one document; this is the second")
	}
	return root, b.problems
}

// syntaxProblem keeps position and message. The parser's own text quotes the source line, which may hold a secret (C3).
func syntaxProblem(err error) fault.Problem {
	p := fault.Problem{Line: 1, Column: 1, What: "this is not YAML"}
	if se, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		if !strings.ContainsAny(se.Message, `"`) {
			p.What = "this is not YAML: " + strings.ReplaceAll(se.Message, "\t", `\t`)
		}
		if se.Token != nil && se.Token.Position != nil {
			p.Line, p.Column = se.Token.Position.Line, se.Token.Position.Column
		}
	}
	return p
}

// tooDeep reports the first line with more than maxDepth open brackets, or an indentation which means as much. It
// guards the parser, which recurses.
func tooDeep(data []byte) (int, bool) {
	line, depth, dashes, margin := 1, 0, 0, true
	for _, c := range data {
		switch c {
		case '\n':
			line, dashes, margin = line+1, 0, true
		case '[', '{':
			depth, margin = depth+1, false
		case ']', '}':
			depth, margin = max(0, depth-1), false
		case '-', '?', ':':
			if margin {
				dashes++
			}
		case ' ', '\t':
		default:
			margin = false
		}
		if depth > maxDepth || dashes > maxDepth {
			return line, true
		}
	}
	return 0, false
}

type builder struct{ problems []fault.Problem }

func (b *builder) problem(n ast.Node, path, what string) {
	line, column := position(n)
	b.problems = append(b.problems, fault.Problem{Line: line, Column: column, Path: path, What: what})
}

// position of a node is that of its first character; the parser puts a block mapping at its first colon.
func position(n ast.Node) (line, column int) {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return position(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(m.Key)
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return 0, 0
	}
	return t.Position.Line, t.Position.Column
}

func (b *builder) node(n ast.Node, path string, depth int) *Node {
	line, column := position(n)
	out := &Node{Line: line, Column: column, Path: path}
	if depth > maxDepth {
		b.problem(n, path, "values are nested too deeply")
		return out
	}
	switch n := n.(type) {
	case *ast.NullNode:
		out.Kind, out.Text = Null, "null"
	case *ast.BoolNode:
		out.Kind, out.Text = Bool, strings.ToLower(n.Token.Value)
	case *ast.IntegerNode:
		out.Kind, out.Text = Int, n.Token.Value
	case *ast.FloatNode:
		out.Kind, out.Text = Float, n.Token.Value
	case *ast.InfinityNode:
		out.Kind, out.Text = Float, n.Token.Value
	case *ast.NanNode:
		out.Kind, out.Text = Float, n.Token.Value
	case *ast.StringNode:
		out.Kind, out.Text = String, n.Value
	case *ast.LiteralNode:
		out.Kind, out.Text = String, n.Value.Value
	case *ast.SequenceNode:
		out.Kind = List
		for i, v := range n.Values {
			out.Items = append(out.Items, b.node(v, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case *ast.MappingNode:
		out.Kind = Map
		b.entries(out, n.Values, depth)
	case *ast.MappingValueNode:
		out.Kind = Map
		b.entries(out, []*ast.MappingValueNode{n}, depth)
	case *ast.TagNode:
		out.Kind = Null
		b.problem(n, path, `a text that begins with ! must be quoted: "!..."`)
		return nil
	case *ast.AliasNode:
		b.problem(n, path, `a text that begins with * must be quoted: "*..."; aliases are not supported`)
		return nil
	case *ast.AnchorNode:
		b.problem(n, path, `a text that begins with & must be quoted: "&..."; anchors are not supported`)
		return nil
	default:
		b.problem(n, path, "this form of YAML is not supported")
		return nil
	}
	return out
}

func (b *builder) entries(out *Node, values []*ast.MappingValueNode, depth int) {
	first := make(map[string]int)
	for _, v := range values {
		switch v.Key.(type) {
		case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.NullNode, *ast.FloatNode:
		case *ast.MergeKeyNode:
			b.problem(v.Key, out.Path, "merge keys (<<) are not supported")
			continue
		default:
			b.problem(v.Key, out.Path, "a key must be a plain word")
			continue
		}
		key := v.Key.GetToken().Value
		line, column := position(v.Key)
		path := join(out.Path, key)
		if seen, ok := first[key]; ok {
			b.problem(v.Key, path, fmt.Sprintf("the key is there twice; the first is in line %d", seen))
			continue
		}
		first[key] = line
		value := b.node(v.Value, path, depth+1)
		out.Entries = append(out.Entries, Entry{
			Key:   &Node{Kind: String, Line: line, Column: column, Path: path, Text: key},
			Value: value,
		})
	}
}

// join appends a key to a path. Keys that a dot or a bracket would make ambiguous are quoted.
func join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ".[]\" @=:\n") || len(key) > 64 {
		key = Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// SortProblems puts problems into the order of the text.
func SortProblems(problems []fault.Problem) {
	slices.SortStableFunc(problems, func(a, b fault.Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}
