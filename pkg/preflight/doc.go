// Package preflight is what checks before the start of a job have to say: findings, each with what was found, why it
// matters and what mends it.
//
// Role: a service that talks to a kind of server makes findings about one of them; the command line collects and shows
// them. Nothing here asks a server.
//
// Invariants:
//   - An Error is what makes the start or the copy of the job fail; everything else that a person should know is a
//     Warning. So `weir doctor` and the start never disagree.
//   - A remedy is of this case: statements have the real names, quoted, and can be pasted as they are.
//   - No field holds a secret or the value of a row.
//
// Failure: a check that cannot be made is a finding itself; it is never left out in silence.
package preflight
