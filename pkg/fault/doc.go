// Package fault names what can go wrong and says what to do about it.
//
// Role. Every error in Weir has one of five classes, which decide what the code does, and every error a person can
// meet has a [Code], which decides what the person does. Both come from one table; docs/errors.md is generated from it.
// The same object, [Error], appears in the CLI, the logs, the REST interface and the event streams.
//
// Invariants.
//   - F1: an error that nobody classified is [Bug]: the attempt fails and restarts from the last durable epoch. Code that
//     may retry in place or drop a row has to say so.
//   - F2: a code is never reused or renumbered. A retired code stays in the table.
//   - F3: every code has a remedy which a reader can act on.
//   - F4: nothing in this package reads an environment, a clock or a file, and no field of [Error] may hold a secret or the
//     value of a row. Callers pass names and positions.
//
// Failure. The package has no state. Two areas that claim one code are caught by its test.
//
// Source. House style, errors: one table, classes tested with errors.Is. Add a code in the file of its area
// (codes_<area>.go), then run "go generate ./fault".
package fault

//go:generate go run ./gen ../../docs/errors.md
