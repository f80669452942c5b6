// Package schedules tests the assembled mesh against seeded schedules of faults. It has no code of its own.
//
// Role: two coordinators, one or two nodes with sources and one or two with sinks run a job from a generator into a
// ledger sink, on a real JetStream server in one testing/synctest bubble. A schedule is a class of faults and a seed;
// everything drawn (shape of the mesh, job, moments, victims) follows from them. Afterwards the validators of pkg/meshtest
// hold the target against the source: the multiset of changes, their order per key, rows, whole transactions, the ledger,
// the chain of manifests, and what an observer saw while the faults happened. A schedule whose fault did not happen fails.
//
// Failure: a failed schedule prints how to replay it. The order of goroutines at one virtual instant is not part of the
// seed, so moments are drawn off the round numbers on which timers stand.
//
// Source: docs/architecture.md. What closes a hole that was found by thinking has a test with a name of its own:
//
//	a job made again is another job; heads are never deleted   pkg/job TestNewLifeCountsOn
//	no epoch id is derived from durable or used twice          pkg/job TestWalkEveryOrder
//	the term exceeds every head's, else BUS_REGRESSED          services/coordinator TestRegressedTermStopsTheCoordinator
//	watches only make it faster                                services/weir/internal/bubble TestSilentWatches
//	a changed incarnation is a lost node                       pkg/job TestChangedIncarnationIsLossAtOnce, TestWant;
//	                                                           services/coordinator TestProcessBackWithinItsLeaseIsLost
//	loss of the data stream is not being fenced                pkg/node TestFailedSubtaskUntilItsAttemptIsReplaced;
//	                                                           services/weir/internal/bubble TestDataStreamIsLost
//	barriers are answered from a loop that never runs SQL      services/cdc-postgres TestLoopsAnswerWhileTheServerIsSilent
//	a target that never answers stops commits only             services/weir/internal/bubble TestBarriersPassWhileTheTargetIsSilent,
//	                                                           TestHungCommitterIsFenced, TestJobWithAHungCommitterIsCancelled;
//	                                                           services/sink/internal/postgres TestHungStatementEndsWithItsContext
//	backends of lower fences of this life are terminated       itest/zombies TestSinkFrozenInMidCommit, TestReaderFrozenWithTheSlot
//	a newer barrier ends older alignments                      pkg/epoch TestAlign
//	open facts are told again                                  pkg/task TestOpenFactsAreRepeated
//	only committed positions are confirmed                     pkg/task TestOnlyCommittedEpochsAreConfirmed
//	a full writer waits only while no epoch is in flight       pkg/task TestBackpressure
//	skipped epochs' pieces are named again, once               pkg/task TestEveryPieceIsCoveredOnce, TestSkippedEpochs
//	claimed ledgers are judged against the chain               pkg/job TestLedgerIsJudgedAgainstTheChain;
//	                                                           here registry-restored
//	a ledger off the chain is never "nothing to do"            services/sink/internal/core TestDecide; pkg/task TestChainFromDurableToLedger
//	garbage is what can never be named again                   services/coordinator/internal/exec TestCollectRemovesOnlyWhatNobodyCanName
package schedules
