// Package meshtest holds what tests of several packages share: a real NATS server with JetStream in the test process.
//
// Role: tests run against the server they will meet, not against an imitation of it. Inside a testing/synctest bubble
// hours of leases, ages and acknowledgement waits pass in milliseconds.
//
// Invariants: a server started here is gone when its test is; in a bubble nothing of it waits for the network
// (in-process connections only).
//
// Failure: a test that leaves a goroutine behind fails its package in [Main].
package meshtest
