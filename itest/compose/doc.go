// Package compose runs compose/compose.yml as its users do, and shows that it does what docs/compose.md says.
//
// # Role
//
// The test builds the images, brings all of it up with the demo's databases, submits the demo's job, compares the copy,
// scales the sink, looks for the new nodes, tries what the rights on the bus forbid, and takes all of it down. The Docker
// engine is one of the test's own (scripts/docker-engine.sh): it knows no registry, so the images of others are made here
// under their names, NATS from its Go module and the databases from Debian's packages.
//
// # Invariants
//
//   - The engine has its own network, processes and mounts. Nothing of the machine's own Docker is asked, used or changed.
//   - When the test ends, in whatever way, no process of the engine or of a container is left.
//
// # Failure
//
// The stand-ins heed the variables and folders that compose.yml uses of the real images, and nothing else of them. What
// only the real ones have is not tested here.
package compose
