package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/fault"
)

// NodeDecoder is implemented by a pointer type that reads its own node. It reports what is wrong to the decoder.
type NodeDecoder interface {
	DecodeNode(d *Decoder, n *Node)
}

// Decoder fills structs from nodes and collects the problems. The zero value is ready.
type Decoder struct {
	Problems []fault.Problem
}

// Problem reports something wrong with n. The text must not quote the value (C3).
func (d *Decoder) Problem(n *Node, format string, args ...any) {
	d.Report(n, fault.Problem{What: fmt.Sprintf(format, args...)})
}

// Word reports that the text of n is none of the allowed words, with the nearest of them. It quotes the text, so it is
// for keys and enumerations only.
func (d *Decoder) Word(n *Node, what string, allowed []string) {
	d.Report(n, fault.Problem{
		What:    fmt.Sprintf("%s %s is not known", what, Quote(n.Text)),
		Allowed: allowed,
		Suggest: Nearest(n.Text, allowed),
	})
}

// Quote returns a word in quotes, or *** when it looks like something that was put into the wrong place and may be a
// secret (C3).
func Quote(s string) string {
	if len(s) > 64 || strings.ContainsAny(s, "@=:\n") {
		return hidden
	}
	return strconv.Quote(s)
}

// Later reports that the text of n is known but not in this build.
func (d *Decoder) Later(n *Node, what string, allowed []string) {
	d.Report(n, fault.Problem{What: fmt.Sprintf("%s %q is not in this build", what, n.Text), Allowed: allowed})
}

// Report adds a problem at the place of n.
func (d *Decoder) Report(n *Node, p fault.Problem) {
	p.Line, p.Column, p.Path = n.Line, n.Column, n.Path
	d.Problems = append(d.Problems, p)
}

// Decode fills the value that target points to. Fields whose key is absent keep their value, unless they have a
// default.
func (d *Decoder) Decode(n *Node, target any) {
	d.value(n, reflect.ValueOf(target).Elem(), Field{})
}

// Struct fills the parts, pointers to the structs that the shape was made of, from one mapping.
func (d *Decoder) Struct(n *Node, shape Shape, parts ...any) {
	if n.Kind != Map {
		d.Problem(n, "this is %s; a mapping is expected", n.Kind)
		return
	}
	targets := make([]reflect.Value, len(parts))
	for i, p := range parts {
		targets[i] = reflect.ValueOf(p).Elem()
	}
	for _, e := range n.Entries {
		f, ok := shape.Find(e.Key.Text)
		switch {
		case !ok:
			d.Word(e.Key, "key", shape.keys())
		case f.Refused():
			d.Report(e.Key, fault.Problem{What: fmt.Sprintf("key %q is not in this build", e.Key.Text)})
		case e.Value == nil: // reported by the parser
		case e.Value.Kind == Null:
			d.Problem(e.Key, "the key has no value")
		default:
			d.value(e.Value, targets[f.part].Field(f.index), f)
		}
	}
	for _, f := range shape {
		if f.Refused() || slices.ContainsFunc(n.Entries, func(e Entry) bool { return e.Key.Text == f.Key }) {
			continue
		}
		at := &Node{Line: n.Line, Column: n.Column, Path: join(n.Path, f.Key), Text: f.Default}
		if f.Required {
			d.Problem(at, "the key is required and missing")
			continue
		}
		d.absent(at, targets[f.part].Field(f.index), f)
	}
}

// absent applies the default of a field whose key is not there, and the defaults inside a struct that is not there.
func (d *Decoder) absent(at *Node, v reflect.Value, f Field) {
	switch {
	case f.Default != "":
		n := scalar(f.Default, v.Type())
		n.Line, n.Column, n.Path = at.Line, at.Column, at.Path
		if slices.Contains(f.Later, f.Default) {
			d.Report(n, fault.Problem{
				What:    fmt.Sprintf("the default %q is not in this build; the key must be set", f.Default),
				Allowed: f.Enum,
			})
			return
		}
		d.value(n, v, f)
	case v.Kind() == reflect.Struct && !implements(v):
		at.Kind = Map
		d.Struct(at, ShapeOf(v.Addr().Interface()), v.Addr().Interface())
	}
}

func implements(v reflect.Value) bool {
	_, ok := reflect.TypeAssert[NodeDecoder](v.Addr())
	return ok
}

func (d *Decoder) value(n *Node, v reflect.Value, f Field) {
	if n == nil {
		return
	}
	if u, ok := reflect.TypeAssert[NodeDecoder](v.Addr()); ok {
		before := len(d.Problems)
		u.DecodeNode(d, n)
		if len(d.Problems) == before {
			d.bounds(n, v, f)
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(n, p.Elem(), f)
		v.Set(p)
	case reflect.Struct:
		d.Struct(n, ShapeOf(v.Addr().Interface()), v.Addr().Interface())
	case reflect.Slice:
		d.list(n, v, f)
	case reflect.Map:
		d.mapping(n, v, f)
	case reflect.String:
		d.text(n, v, f)
	case reflect.Bool:
		if n.Kind != Bool {
			d.Problem(n, "this is %s; true or false is expected", n.Kind)
			return
		}
		v.SetBool(n.Text == "true")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.integer(n, v, f)
	case reflect.Float64:
		x, err := strconv.ParseFloat(n.Text, 64)
		if (n.Kind != Float && n.Kind != Int) || err != nil {
			d.Problem(n, "this is %s; a number is expected", n.Kind)
			return
		}
		v.SetFloat(x)
	default:
		panic(fmt.Sprintf("C1: a field of type %s cannot be configured", v.Type()))
	}
}

func (d *Decoder) list(n *Node, v reflect.Value, f Field) {
	if n.Kind != List {
		d.Problem(n, "this is %s; a list is expected: [...]", n.Kind)
		return
	}
	if len(n.Items) == 0 && f.Required {
		d.Problem(n, "the list is empty")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		if item != nil && item.Kind == Null {
			d.Problem(item, "the element is empty")
			continue
		}
		d.value(item, out.Index(i), f)
	}
	v.Set(out)
}

func (d *Decoder) mapping(n *Node, v reflect.Value, f Field) {
	if n.Kind != Map {
		d.Problem(n, "this is %s; a mapping is expected", n.Kind)
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.Entries))
	for _, e := range n.Entries {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.Value, item, f)
		out.SetMapIndex(reflect.ValueOf(e.Key.Text).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

func (d *Decoder) text(n *Node, v reflect.Value, f Field) {
	if n.Kind == List || n.Kind == Map {
		d.Problem(n, "this is %s; a text is expected", n.Kind)
		return
	}
	if len(f.Enum) > 0 || len(f.Later) > 0 {
		switch {
		case slices.Contains(f.Later, n.Text):
			d.Later(n, "the value", f.Enum)
			return
		case !slices.Contains(f.Enum, n.Text):
			d.Word(n, "the value", f.Enum)
			return
		}
	}
	switch {
	case n.Kind != String && len(f.Enum) == 0:
		d.Problem(n, "this is %s; a text is expected: put it in quotes", n.Kind)
		return
	case n.Text == "":
		d.Problem(n, "the text is empty")
		return
	case strings.Contains(n.Text, "${"):
		d.Problem(n, "references (${...}) are not allowed here")
		return
	}
	if f.Pattern != "" && !regexp.MustCompile(`^(?:`+f.Pattern+`)$`).MatchString(n.Text) {
		d.Problem(n, "the value %s is not valid: %s", Quote(n.Text), f.Hint)
		return
	}
	v.SetString(n.Text)
}

func (d *Decoder) integer(n *Node, v reflect.Value, f Field) {
	text := strings.ReplaceAll(n.Text, "_", "")
	if n.Kind == String { // the parser reads a number that is too long as a text
		if _, err := strconv.ParseInt(text, 10, 64); errors.Is(err, strconv.ErrRange) {
			d.Problem(n, "the number is out of range")
			return
		}
	}
	if n.Kind != Int {
		d.Problem(n, "this is %s; a whole number is expected", n.Kind)
		return
	}
	bits := v.Type().Bits()
	var err error
	if v.CanUint() {
		var x uint64
		if x, err = strconv.ParseUint(text, 0, bits); err == nil {
			v.SetUint(x)
		}
	} else {
		var x int64
		if x, err = strconv.ParseInt(text, 0, bits); err == nil {
			v.SetInt(x)
		}
	}
	if err != nil {
		d.Problem(n, "the number is out of range")
		return
	}
	d.bounds(n, v, f)
}

// bounds checks min and max of anything whose Go kind is an integer.
func (d *Decoder) bounds(n *Node, v reflect.Value, f Field) {
	for _, b := range []struct {
		text string
		sign int
		word string
	}{{f.Min, -1, "least"}, {f.Max, 1, "most"}} {
		if b.text == "" {
			continue
		}
		limit := reflect.New(v.Type()).Elem()
		(&Decoder{}).value(scalar(b.text, v.Type()), limit, Field{})
		if compare(v, limit)*b.sign > 0 {
			d.Problem(n, "the value must be at %s %s", b.word, b.text)
		}
	}
}

func compare(a, b reflect.Value) int {
	if a.CanUint() {
		switch x, y := a.Uint(), b.Uint(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	switch x, y := a.Int(), b.Int(); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// scalar makes the node of a text from a tag or from the environment, read as the target needs it: a list is split at
// commas, a text is never a number.
func scalar(text string, t reflect.Type) *Node {
	n := &Node{Kind: String, Text: text}
	if t.Kind() == reflect.Slice {
		n.Kind, n.Text = List, ""
		for item := range strings.SplitSeq(text, ",") {
			n.Items = append(n.Items, scalar(strings.TrimSpace(item), t.Elem()))
		}
		return n
	}
	if t.Kind() == reflect.String {
		return n
	}
	if _, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64); err == nil {
		n.Kind = Int
	} else if _, err := strconv.ParseUint(text, 0, 64); err == nil {
		n.Kind = Int
	} else if _, err := strconv.ParseFloat(text, 64); err == nil {
		n.Kind = Float
	} else if text == "true" || text == "false" {
		n.Kind = Bool
	}
	return n
}
