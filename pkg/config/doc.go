// Package config reads what people write: process configuration, job specs, environment variables.
//
// Role. A YAML text becomes a tree of [Node] with positions; a [Decoder] fills Go structs from it and collects every
// problem instead of stopping at the first. The struct tags are the one description of a format: the decoder, the JSON
// Schema ([Shape.Schema]), the environment overlay ([Overlay]) and the printed form ([Encode]) all read them.
//
// Tags. yaml:"key[,required]" names a field; a field without it is not configuration. default:"..." is applied when the
// key is absent. enum:"a,b" lists the words of a string. later:"true" marks a known key, later:"a,b" known words, which
// this build refuses as such. min and max bound numbers, durations and sizes. pattern with hint constrain a string.
// doc:"..." is the description in the schema.
//
// Invariants.
//   - C1: a key, a word or an environment variable that is not known is a problem; nothing is ignored.
//   - C2: every problem of a text is reported, in the order of the text, with line, column and path. A syntax error is
//     the exception: it hides what follows it.
//   - C3: a [Secret] prints as *** in every form. Its references (${VAR}) are kept as written and resolved only by the
//     code that needs the value. No problem quotes a value.
//   - C4: Encode followed by Decode is the identity.
//
// Failure. The package has no state. Reading files and variables happens only in [Lookup], which the caller passes in.
//
// Source. YAML 1.2 as parsed by goccy/go-yaml, without anchors, aliases, merge keys and tags: a configuration should be
// readable from top to bottom.
package config
