// Package explain shows the plan of a job before it runs: its vertices, what travels between them on which subjects, what
// each hop guarantees and which one is the weakest.
//
// Role: [New] derives an [Explanation] from the plan that the coordinator would make of the same spec; [Explanation.Text],
// [Explanation.Mermaid] and [Explanation.SVG] draw it.
//
// Invariants: nothing is read but the spec, so it works offline and before variables are set; the same spec gives the same
// bytes in every form; no value of a secret can occur, since plans hold none.
//
// Failure: a spec that a submit would refuse is refused with the same error.
//
// Source: docs/promises.md for the guarantees of the hops.
package explain
