// Package stops shows how jobs stop and go on, each service a process of its own: suspended and resumed in every state, with
// the target up and down, taken back to a savepoint after they went on, with other numbers of readers and writers, and rewound
// when rows that wait for a commit are lost.
//
// # Role
//
// Tests only.
//
// # Invariants
//
//   - In the end the copy equals the source row by row. A changelog has every change once, unless it was said before that some
//     come twice.
//   - What a savepoint makes the source's server keep is gone when the savepoint is.
//
// # Failure
//
// A failing test names the tables and the first rows that differ.
//
// Source: docs/adr/0021-restores-continue-the-chain.md.
package stops
