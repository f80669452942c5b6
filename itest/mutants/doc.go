// Package mutants shows that the guards of exactly-once are guarded themselves: each test takes one guard out of the
// product and sees a named test fail because of it.
//
// Role: a mutant is one exact replacement in one file. It reaches the compiler by `-overlay`, so neither the tree
// nor the product knows of it. A guard whose text has moved fails its mutant: point the mutant at the guard again.
//
// Failure: "survived" means that the named test cannot fail for what it claims to prove.
//
// Source: docs/architecture.md; DeMillo, Lipton, Sayward, "Hints on Test Data Selection" (1978).
package mutants
