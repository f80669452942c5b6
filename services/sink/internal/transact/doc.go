// Package transact is the committer of every sink that changes rows and ledger in one transaction of its target: how such a
// ledger is claimed, and what becomes of a commit whose outcome is unknown.
//
// Role: [Claim] and [Commit] lead; a [Target] does what its database does in its own way. [Dead] puts rows aside that it can never
// take. [Place] and [Known] give the errors of these sinks one form.
//
// Invariants:
//   - I8: a ledger is taken only while its row is locked, and once more looked at behind the write, since a row that was not
//     there could not be locked.
//   - I13: a commit whose outcome is unknown is never done again before the ledger, by a new session, has said what became of it.
//
// Failure: whatever is cut short leaves no more than a session, which the next one of the same sink ends before it looks.
//
// Source: docs/architecture.md, "Sinks: stage, then commit".
package transact
