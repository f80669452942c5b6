// Package cdcpostgres holds the integration tests of the PostgreSQL source: a real server, the connector's two halves,
// and a driver that stands in for the subtask runtime and the coordinator.
//
// The cases O01 to O50 are failures of other tools reported in public; each test says which one it is. Those of
// PostgreSQL, and where they are tested:
//
//	O01  a change between a chunk and the log    TestVisibilityGap, TestBehindStandby, TestSource, flows.TestKillWhileTablesAreCopied
//	O02  crash before the copy is acknowledged   TestCrashBetweenCopyAndEpoch, TestSource
//	O05  readers of several moments, reconnects  TestSource (killed connections)
//	O06  a copy outlasts the connection          TestCopyLongerThanTheServersPatience
//	O07  interleaved transactions                TestInterleavedTransactions
//	O08  logical messages                        TestLogicalMessage
//	O09  confirmed is what is committed          TestConfirmsOnlyCommittedEpochs
//	O10  restart inside a transaction            TestTornTransaction, TestSource (wide transactions)
//	O14  idle tables keep log                    TestIdleTableKeepsNoLog
//	O15  keepalives confirm nothing              TestConfirmsOnlyCommittedEpochs
//	O16  a blocked consumer                      TestBlockedConsumerKeepsTheConnection
//	O17  a slot made again                       TestSlotMadeAgain
//	O18  a slot that lost log                    TestSlotLost
//	O19  a slot older than its publication       TestSlotOlderThanItsPublication
//	O20  a publication changed under its slot    TestTableIsAdded
//	O34  underscores in names                    TestUnderscoreIsNoWildcard
//	O35  identifiers of any letters              TestIdentifiers
//	O42  values out of line                      TestUnchangedToast, TestMovedWithoutItsValue, itest/types
//	O43  generated columns                       TestGeneratedColumn, TestGeneratedColumnsByPublication, ...UnderFull
//	O44  special numbers and dates               itest/types
//	O45  a key changes                           TestKeyChange, TestMovedWithoutItsValue, TestSource
//	O46  changes of one key in one epoch         pkg/rows, itest/sink
//	O47  transactions larger than memory         TestLargeTransactionInBoundedMemory
//	O49  a server that says nothing              TestFrozenServer, TestOneWaySilence
//	O50  times that are not known                TestReportsNoTimeThatIsNotKnown, and how they are shown: services/weir/internal/cli
//
// Elsewhere: O13, a sink that fails while the source goes on (itest/dlq); O14 with another, busy database, and O48, values larger
// than a message (itest/big).
package cdcpostgres
