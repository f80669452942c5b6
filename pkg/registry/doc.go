// Package registry gives the records of the mesh their types: heads, intents, specs, plans, manifests, leases and the
// leaders' term, kept in buckets of the bus.
//
// Role: adapter between pkg/bus, which moves bytes, and the pure packages, which decide. Everybody may read; who may
// write what is said at each method.
//
// Invariants:
//   - Every write that decides something is a compare-and-swap or create-only. A write whose outcome nobody knows is
//     read back here where comparing the bytes settles it (plans, manifests, leases), and reported as bus.ErrUnknown
//     where only the writer can (heads).
//   - A read proves nothing about the present: on a cluster a replica may answer late.
//   - Plans and manifests are checked against the digest by which they are asked for.
//   - A lease's deadline counts from the sending of the renewal, not from its answer.
//   - Old plans and manifests go by purge of their subject; nothing is deleted by a marker that stays for ever.
//
// Failure: the package holds no state but its handles; a process that dies leaves nothing behind but its leases, which
// expire.
//
// Source: docs/architecture.md; Chubby and Gazette for leases by conditional
// write.
package registry
