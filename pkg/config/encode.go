package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Secrets says how [Encode] writes a [Secret].
type Secrets uint8

// The ways to write a secret.
const (
	Redact Secrets = iota // references as written, *** for the rest: for people
	Keep                  // as written: for storing
)

// NodeEncoder is implemented by a type that writes its own node.
type NodeEncoder interface {
	EncodeNode(s Secrets) *Node
}

// Encode is the inverse of [Decoder.Decode]. Empty texts, lists and absent pointers are left out; everything else is
// written, defaults included.
func Encode(v any, s Secrets) *Node { return encode(reflect.ValueOf(v), s) }

// EncodeParts encodes several structs into one mapping.
func EncodeParts(s Secrets, parts ...any) *Node {
	out := &Node{Kind: Map}
	for _, p := range parts {
		out.Entries = append(out.Entries, Encode(p, s).Entries...)
	}
	return out
}

func encode(v reflect.Value, s Secrets) *Node {
	switch x := v.Interface().(type) {
	case NodeEncoder:
		return x.EncodeNode(s)
	case Secret:
		if s == Keep {
			return Word(x.raw)
		}
		return Word(x.Redacted())
	case Text:
		return Word(x.raw)
	case fmt.Stringer:
		if v.CanInt() { // Duration, Bytes
			return Word(x.String())
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return encode(v.Elem(), s)
	case reflect.Struct:
		out := &Node{Kind: Map}
		for i := range v.NumField() {
			f, ok := fieldOf(v.Type().Field(i))
			if !ok || f.Refused() {
				continue
			}
			out.Put(f.Key, encode(v.Field(i), s))
		}
		return out
	case reflect.Slice:
		if v.Len() == 0 {
			return nil
		}
		out := &Node{Kind: List}
		for i := range v.Len() {
			out.Items = append(out.Items, encode(v.Index(i), s))
		}
		return out
	case reflect.Map:
		if v.Len() == 0 {
			return nil
		}
		out := &Node{Kind: Map}
		items := make(map[string]reflect.Value, v.Len())
		for it := v.MapRange(); it.Next(); {
			items[it.Key().String()] = it.Value()
		}
		for _, k := range slices.Sorted(maps.Keys(items)) {
			out.Put(k, encode(items[k], s))
		}
		return out
	case reflect.String:
		return Word(v.String())
	case reflect.Bool:
		return &Node{Kind: Bool, Text: strconv.FormatBool(v.Bool())}
	case reflect.Float64:
		return &Node{Kind: Float, Text: strconv.FormatFloat(v.Float(), 'g', -1, 64)}
	default:
	}
	switch {
	case v.CanInt():
		return &Node{Kind: Int, Text: strconv.FormatInt(v.Int(), 10)}
	case v.CanUint():
		return &Node{Kind: Int, Text: strconv.FormatUint(v.Uint(), 10)}
	}
	panic(fmt.Sprintf("C4: a field of type %s cannot be written", v.Type()))
}

// Word returns the node of a text, nil for the empty one.
func Word(s string) *Node {
	if s == "" {
		return nil
	}
	return &Node{Kind: String, Text: s}
}

// Put appends a key to a mapping; a nil value is left out.
func (n *Node) Put(key string, value *Node) {
	if value == nil {
		return
	}
	n.Entries = append(n.Entries, Entry{Key: &Node{Kind: String, Text: key}, Value: value})
}
