// Package rig is the flow that the failure tests break: the shop under load, moved by a mesh of separate processes into a
// copy and a changelog, watched by readers all the while.
//
// # Role
//
// [Start] builds it and opens the shop. A test then does harm to what it likes. [Rig.Verdict] closes the shop and holds
// the targets against the source: row by row, change by change, commit by commit.
//
// # Invariants
//
//   - R1: the shop stays open until the verdict; faults meet a system at work.
//   - R2: a verdict takes nothing from the product but the word that it has caught up, and its own audit.
//
// # Failure
//
// A verdict names the first few places of each guarantee that does not hold.
package rig
