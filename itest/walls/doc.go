// Package walls proves that the walls of the repository stand: that
// golangci-lint, with the committed configuration, reports every import and
// every call that the architecture forbids.
//
// # Role
//
// The test lays out a small workspace with the shape of ours in a scratch
// folder, plants one violation per wall, and compares what the linter reports
// with what it must report, file by file. Services are taken from the real
// tree, so a new service without a wall of its own turns the test red.
//
// # Invariants
//
//   - W1: every planted violation is reported by the wall that it breaks.
//   - W2: nothing else is: the permitted counterpart of each violation, planted
//     beside it, stays silent.
//
// # Failure
//
// Without the linter the test fails; scripts/tools.sh finds or installs it.
//
// # Source
//
// docs/architecture.md on walls; .golangci.yml holds the rules.
package walls
