// Package fence holds the token that separates one attempt of a job from every other.
//
// Role: an attempt is one deployment of a job. The coordinator raises the token by one in the
// compare-and-swap that starts an attempt; every envelope, state object, ledger row and database
// session of the attempt carries it. Whoever is offered a message compares its token with the one
// it holds itself and acts on the [Verdict].
//
// Invariants:
//   - I8: nothing with an older token is accepted after a newer one was granted.
//   - A token is learnt only from the head record, never from the data path: one corrupt message
//     must not be able to fence a whole job.
//   - Tokens are never reused, also not when a job is deleted and made again under its name.
//
// Failure: a process that was stopped and continued still holds its old token; everything it then
// writes is refused by the bus (its stream is gone), by the receivers (Older) and by the ledger.
//
// Source: the fencing token of Kleppmann, "How to do distributed locking"; Gazette's author
// registers; docs/architecture.md.
package fence
