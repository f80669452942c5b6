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
// # Where each point is tested
//
// docs/progress.md names the test of each point of the validation path and of each acceptance criterion;
// TestWhatIsNamedHereIsThere holds it to that.
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
