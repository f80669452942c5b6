// Package nats is the sink that delivers changes as events to subjects of one JetStream stream, in order and each once.
//
// Role: writers stage on the bus; the committer publishes the events of a durable epoch. The stream is the ledger. Under
// the prefix of the spec it holds
//
//	<prefix>.<source>.<schema>.<table>    one event for each change; an update's two images are one event
//	<prefix>._weir                        marks: what is committed, who may write, how far an epoch has got
//
// Invariants:
//   - Every write names the sequence that it follows in the whole stream. So what is stored is one unbroken chain of writes of
//     one attempt after the other; a write is at its place or nowhere, and a lost reply is answered by reading the end.
//   - The events of an epoch are numbered from 0 in an order that depends on the manifest only. Each says (life, fence, epoch,
//     index) in its header; a committer reads the newest one and goes on behind it.
//   - An attempt claims the stream by a mark with its fence (I8). From then on what an older one writes follows a sequence that
//     is no longer the last, and is refused by the server.
//   - The mark at the end of an epoch is its commit: it carries the manifest's digest and its predecessor. An epoch that
//     staged nothing leaves nothing; one whose rows all became letters leaves its mark.
//   - Nothing depends on the server's window of message ids.
//
// Failure, by where the power goes:
//   - Between events: the successor claims, which keeps what the newest event says in the mark, and goes on behind it.
//   - Between send and reply: events under way are stored before the end is read, or refused afterwards; both ways the
//     end says what is there.
//   - While the stream drops old messages by size: a mark every markBytes or markEvents keeps the newest one near the end.
//   - Somebody else writes, or removes the marks: SINK_STREAM_FOREIGN, a stop. Nothing is guessed.
//
// Source: docs/adr/0025; docs/nats-sink.md describes the events for those who read them.
package nats
