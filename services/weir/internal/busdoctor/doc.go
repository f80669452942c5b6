// Package busdoctor says what of a NATS server keeps a mesh from working, or from keeping its promises, and what mends it.
//
// Role: core. It makes findings of a survey ([bus.Survey]) that somebody else has taken; it asks nobody.
//
// Invariants:
//   - What cannot be seen from a client is Unknown, with the command that shows it; nothing is taken for good unseen.
//   - Commands of a remedy have the real names and can be pasted as they are; each is run by a test (itest/inspect).
//   - No finding holds a password or the value of a row.
//
// Failure: a part of the survey that is missing is a finding of its own, and the checks that need it are left out.
//
// Source: docs/promises.md for what rests on the server; the JetStream API.
package busdoctor
