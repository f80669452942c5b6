// Package zombies freezes processes that hold something outside the bus, lets others take over, and lets them go on.
//
// # Role
//
// epochs.md §2: a committer frozen in mid-commit holds the ledger's row, a stopped reader holds the slot. The successor
// must get both, and what comes back must be refused and counted.
//
// # Invariants
//
//   - The moment is proven, not hoped for: the frozen committer is seen to hold the row, the frozen reader the slot.
//
// # Failure
//
// A process that is still frozen when a test fails is killed with it.
package zombies
