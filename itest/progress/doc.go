// Package progress holds the progress of real jobs against what their databases and targets say.
//
// # Role
//
// The validation path and the acceptance criteria of STIP-30, in separate processes over PostgreSQL and MySQL.
//
// # Invariants
//
// Every detail that is seen on the way, not only the last one, is judged: counts balance, no total is shown while a table is
// not cut, positions are of their source's family, and lifecycle, recovery and health agree.
//
// # Failure
//
// A test that fails names the detail that it has seen. Nothing is judged by how long it took, but for causes, which have to be
// named in time.
//
// # Where each point of the validation path is tested
//
//  1. snapshot with lazy chunks: TestProgressOfTwoDatabases/snapshot_with_lazy_chunks (PostgreSQL and MySQL); pkg/report
//     TestNoTotalIsInvented; pkg/progress TestWhatIsExactCanBeComputedAgain
//  2. watermarks of one split: pkg/report TestAReportThatContradictsItselfIsRefused; more than 100 active splits: the same
//     and TestReportsComeBack
//  3. catch-up to incremental: TestProgressOfTwoDatabases/snapshot_with_lazy_chunks
//  4. a position past checkpoint N: TestProgressOfTwoDatabases/positions_pass_a_checkpoint
//  5. N completes, N+1 is given up, N stays: pkg/progress TestCandidateDurableCompletedAreApart
//  6. restore: TestProgressOfTwoDatabases/a_restore_is_told; pkg/progress TestRestoreIsToldNotConcluded
//  7. idle, stale, no progress, backpressure: TestProgressOfTwoDatabases/an_idle_source_is_not_stalled; pkg/progress
//     TestARestingPositionIsNotStalled, TestASlowNodeDelaysItsOwnReports
//  8. two collection paths: services/progress TestReportsBecomeAnswers
//  9. sequences and attempts: pkg/progress TestOrderOfAttemptsAndSequences; services/progress TestReportsBecomeAnswers
//  10. several sources of several kinds: TestProgressOfTwoDatabases; pkg/progress TestTwoFamiliesInOneShape
//  11. metrics without names of a database: TestProgressOfTwoDatabases/no_metric_has_a_name; services/progress
//     TestNoMetricNamesWhatADatabaseNames
//  12. PostgreSQL in the same shape: pkg/progress TestTheCanonicalShape, TestTwoFamiliesInOneShape
//  13. round trips and refused combinations: pkg/report TestReportsComeBack, TestCombinationsOfStates
//
// Why a job does not move is named within 10 s: pkg/progress TestWhyNamesWhatDoesNotMove, and with real causes, each with the
// time that it took, the parts of TestProgressOfTwoDatabases: a sink that is locked, a source that is down, a subtask that an
// epoch waits for, nobody for a role, dead letters that come, a lost slot. With each, the command line has to say the same and
// the alert has to see it, in a Prometheus that reads the service by the rules that we ship; the queries of the dashboard have
// to find something there. When alerts fire: TestRulesFire.
//
// A wait for caught-up: TestCopy/caught_up_means_visible, and 5 on time-out with the reason in a_blocked_sink_is_named. The page
// in a browser: TestCopy/page.
package progress
