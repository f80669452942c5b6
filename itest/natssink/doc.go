// Package natssink tests the sink of type nats with real servers and separate processes: what its events look like, for
// PostgreSQL and MariaDB, and that a reader of the stream sees each change once while sinks, or servers of a stream with three
// copies, are killed.
package natssink
