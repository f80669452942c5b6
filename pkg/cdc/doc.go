// Package cdc is the snapshot algorithm of database sources: how tables are cut into chunks that many readers copy while
// writers go on, and how the log takes over from them so that each row is emitted exactly once, as read or as change.
//
// # Role
//
// It is the pure core that every database source shares; the adapter knows SQL, the log's format and what a position is.
// [Assigner] is the mind of the enumerator, [Share] of a reader, [Filter] of the reader that has the log. They tell each
// other messages whose bytes the adapter only carries.
//
//	Enumerator.Poll      do Effects: Tell to a reader; AskBounds and Settle to a goroutine that runs SQL, which answers
//	                     through the loop with Bounded and Settled
//	Enumerator.Receive   Assigner.Receive
//	Enumerator.Snapshot  Assigner.Snapshot(e): head and segments, or Inline for both in one
//	Enumerator.Confirm   Assigner.Committed(e)
//	open                 NewAssigner, or RestoreAssigner with head and Config.Parts, then Tables with what is captured now;
//	                     Log has the position to check the slot against
//
//	Reader.Receive       Share.Receive
//	Reader.Poll          Next: read the chunk and its mark, emit its rows as OpRead, Finish, all within one Poll;
//	                     Follow: open the log, NewFilter, Passed at the position it begins with;
//	                     per change Judge (twice for a change of the key), per whole transaction Passed, and Share.Passed
//	                     with what it returns; Pausing: emit the truncates at a safe point, stop, Paused;
//	                     at last Outbox, each message by Output.Tell
//	Reader.Snapshot      Share.State with the log's own state; Config.Restore is not used: the enumerator hands out anew
//
// The cuts of both name the objects of their Spools, so that they are kept.
//
// A drain ends behind the snapshot: the enumerator is drained when Lifecycle is Incremental, or Ended in mode Only; the reader
// of the log when its filter is Done and its position has reached the end that was fixed; any other reader when it was asked
// to, or its Share has Ended, and it has nothing open. It is polled on, and may get more to do.
//
// # Invariants
//
//	I1  The chunks of a table cover every key, each once, whatever is inserted, deleted or cut meanwhile; a log is not
//	    handed out unless their bounds prove it.
//	I2  A chunk is in an epoch whole or not at all: its rows lie before the barrier exactly when its report is in the state
//	    of the reader or of the enumerator. A report stays with the reader until the enumerator's acceptance, in band with
//	    the barriers, says that it is in the enumerator's state.
//	I3  A change is emitted by the log if and only if the mark of its key's chunk does not contain its transaction.
//	I4  No change is emitted before every chunk is in a committed epoch: it cannot overtake a row that another reader read.
//	I5  No chunk is read before everything the log may be past is visible (Settle).
//	I6  The state of the log is with one reader or with the enumerator, never with both, never with none once begun.
//	I7  The same calls give the same effects and the same bytes.
//
// A truncate of a table between two of its chunks cannot be told from them: [Again] says so, the truncate is emitted and the
// table copied anew. A row whose key changes between two chunks can be new at every sink although the log calls it a change;
// where the log then leaves out columns (PostgreSQL: unchanged values stored out of line, unless REPLICA IDENTITY FULL), they
// are nowhere, and the adapter must copy the table again ([Share.Paused]) or stop, never emit the row without them.
//
// # Failure
//
// Any crash ends the attempt. The next one is restored from a durable epoch, with any number of readers; chunks whose reports
// that epoch does not have are read again, under new marks. A table without a key is one chunk, which a reader may spool:
// [Share.Spool]; such a chunk goes on where the epoch has it. Bytes that are not ours are [ErrMalformed].
//
// # Source
//
// DBLog (Andreakis, Papapanagiotou, 2020) and Flink CDC's incremental snapshots for chunks and hand-over; marks by transaction
// visibility instead of log positions are our own, because the order of the log is not the order of visibility.
//
// Stable: every exported name here. The byte forms carry versions.
package cdc
