package fault

// Codes of the area REG: the registry of nodes, jobs and leases. Numbers are never reused (F2); append at the end.
const (
	RegUnavailable   Code = "WEIR-REG-001" // the registry cannot be reached
	RegConflict      Code = "WEIR-REG-002" // another process changed the record first
	RegLeaseLost     Code = "WEIR-REG-003" // the lease was lost
	RegNotLeader     Code = "WEIR-REG-004" // this coordinator is not the leader
	RegNoLeader      Code = "WEIR-REG-005" // no coordinator answers
	RegCorrupt       Code = "WEIR-REG-006" // a record of the registry cannot be decoded
	RegVersionTooNew Code = "WEIR-REG-007" // a record was written by a newer version
	RegNodeTwice     Code = "WEIR-REG-008" // another process uses this node id
)

func regCodes() []Entry {
	return []Entry{
		{
			Code: RegUnavailable, Name: "REG_UNAVAILABLE", Class: Transient, Exit: ExitEnvironment,
			Title:  "the registry cannot be reached",
			Remedy: "Check NATS; the registry is its JetStream buckets.",
		},
		{
			Code: RegConflict, Name: "REG_CONFLICT", Class: Transient, Exit: ExitInternal,
			Title:  "another process changed the record first",
			Remedy: "Nothing to do: the loser reads again.",
		},
		{
			Code: RegLeaseLost, Name: "LEASE_LOST", Class: Fenced, Exit: ExitInternal,
			Title:  "the lease was lost",
			Remedy: "Nothing to do: the process stops its work and takes part again with a new lease. When it repeats, the node or the bus is overloaded.",
		},
		{
			Code: RegNotLeader, Name: "NOT_LEADER", Class: Transient, Exit: ExitEnvironment,
			Title:  "this coordinator is not the leader",
			Remedy: "Nothing to do: the request is repeated to the leader.",
		},
		{
			Code: RegNoLeader, Name: "NO_LEADER", Class: Transient, Exit: ExitEnvironment,
			Title:  "no coordinator answers",
			Remedy: "Start one: `weir serve coordinator`, or `weir up`.",
		},
		{
			Code: RegCorrupt, Name: "REG_CORRUPT", Class: Permanent, Exit: ExitVerify,
			Title:  "a record of the registry cannot be decoded",
			Remedy: "Check that every process of the mesh runs the same version and that nothing else writes Weir's buckets.",
		},
		{
			Code: RegVersionTooNew, Name: "REG_VERSION", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a record was written by a newer version",
			Remedy: "Upgrade this process.",
		},
		{
			Code: RegNodeTwice, Name: "NODE_TWICE", Class: Permanent, Exit: ExitRequest,
			Title:  "another process uses this node id",
			Remedy: "Give each process its own id with --node.",
		},
	}
}
