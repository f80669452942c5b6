// Package ha breaks a mesh that has more than one of everything: two coordinators, two or three nodes of each role, a NATS
// cluster of three.
//
// # Role
//
// Every process is killed, frozen or cut off from the bus in turn, the leader and each NATS server among them, while a
// flow moves; processes join and leave; many jobs lie idle. What has to hold is in package rig, here is the harm, and how
// long each kind of it keeps epochs from becoming durable.
//
// # Invariants
//
//   - A run is repeated by its seed (ITEST_SEED), as far as real processes repeat anything.
//   - What happens to a coordinator, the leader or not, begins no attempt.
//   - What is broken stays broken until an epoch is durable that was triggered after it broke.
//
// # Failure
//
// Times are printed and judged only where a slow machine cannot make the difference.
package ha
