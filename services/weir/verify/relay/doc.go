// Package relay is a network that can be harmed: between a process and its NATS servers, or between the mesh and a database.
//
// # Role
//
// A [Relay] passes bytes on until it is told otherwise. [Relay.Part] delivers nothing, in one direction or both, as a partition does;
// [Relay.Cut] breaks connections, [Relay.Refuse] takes no new ones; [Relay.Delay] is a slow line; [Relay.CutAfter] breaks one
// connection at a word of the client's, before or after the server has it: the reply to a COMMIT that nobody hears; [Relay.CutReplies] does
// so when a part of an answer has arrived.
//
// # Invariants
//
//   - R1: a partition refuses nothing and loses nothing: what was sent arrives when it heals, if its receiver is still there.
//   - R2: one order of CutAfter or CutReplies is one cut.
//
// # Failure
//
// A server that does not answer is a client whose connection is closed, as without a relay.
package relay
