// Package envelope is the outer form of every message of the mesh: text headers a person can read with the NATS CLI, and
// a payload.
//
// Role: senders turn an [Envelope] into headers with [Envelope.Header]; receivers turn headers and payload back with
// [Parse]. What the payload holds is the business of the kind: Arrow IPC for rows, JSON for everything else.
//
// Invariants:
//   - E1: an unknown version, kind or Weir header is an error, never skipped: a receiver that guesses loses rows.
//   - E2: Parse(Header(e)) gives e back, and nothing that Parse accepts has two spellings.
//   - E3: samples of every version that was ever written stay in schemas/testdata as fixtures and stay readable.
//
// Failure: a message that cannot be parsed ends the attempt; the rows are read again from the last durable epoch.
//
// Source: docs/architecture.md; W3C Trace Context for traceparent and tracestate.
package envelope
