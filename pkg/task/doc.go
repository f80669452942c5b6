// Package task runs one subtask of an attempt: an enumerator, a reader, a writer or a committer.
//
// Role: [Subtask.Run] is one loop in one goroutine that owns everything of the subtask. The decisions are passive values
// it feeds: [Gate] (may this message come in?), [epoch.Align] (where is the cut?), [Window] (may this message go out?),
// staged pieces and the chain of manifests to commit. Around the loop stand a pump that moves messages from the bus into
// the [mailbox], a gauge that asks the bus how much of a channel is unconsumed, and the [Board] of open facts.
//
// Invariants:
//   - T1: a message is acknowledged to the bus only after the operator has processed it.
//   - T2: numbers of a channel have no gap: a repeat is dropped only when it is the same message, everything else ends
//     the attempt. Rows are then read again from the source, which is the durable truth.
//   - T3: a barrier is sent by the loop that sends the rows, at a safe point (I4); the same barrier closes the tallies.
//   - T4: a writer's ack names everything it has staged that was not durable when the barrier was injected. The barrier
//     says in its payload what was durable then, so the answer does not depend on which head record the node has seen.
//   - T5: a committer commits only what a head record of its own fence, read again just before, names as durable.
//   - T6: nothing is confirmed to a source but an epoch that every sink has committed.
//
// Failure: a subtask that returns an error has ended; its node reports it, and the next attempt starts from the last
// durable epoch. Nothing in memory is needed for that.
//
// Source: docs/architecture.md; Flink's task loop with a mailbox (FLIP-27) for "barriers between polls".
package task
