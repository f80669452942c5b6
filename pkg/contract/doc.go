// Package contract holds the Go types that travel against their language-neutral description in schemas/.
//
// Role: for tests. It validates documents against a JSON Schema and compares the fields of a Go type with the properties
// of a schema, so that neither can change without the other.
//
// Invariants: every field of the type is a property and every property is a field; a property is required exactly when
// the type always writes it.
//
// Failure: a difference is an error with the path of the field; nothing is repaired.
//
// Source: JSON Schema 2020-12; schemas/README.md.
package contract
