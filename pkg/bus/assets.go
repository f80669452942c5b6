package bus

// Asset describes one stream or bucket of the mesh, as data for documentation, rights and checks.
type Asset struct {
	// Name of the stream or bucket; parts in angle brackets vary.
	Name string
	// Kind is "stream" or "bucket".
	Kind string
	// Storage is "file" or "memory".
	Storage string
	// Subjects the stream stores, or the keys of the bucket.
	Subjects string
	// Keeps says what is kept and when something goes.
	Keeps string
	// Writers and Readers are services.
	Writers, Readers []string
	Purpose          string
}

// Assets lists everything the mesh keeps on the bus.
func Assets() []Asset {
	workers := []string{"cdc-mysql", "cdc-postgres", "edge-ingress", "transform", "sink"}
	leader := []string{"coordinator"}
	all := append([]string{"coordinator"}, workers...)
	return []Asset{
		{
			Name: "WEIR_<job>_<fence>", Kind: "stream", Storage: "memory",
			Subjects: "weir.data.<job>.<fence>.<dst>.<src>",
			Keeps:    "each message until its receiver acknowledges it; refuses new ones when full, also per channel",
			Writers:  workers, Readers: workers,
			Purpose: "data plane of one attempt; deleting it ends the attempt's right to write",
		},
		{
			Name: AckStream, Kind: "stream", Storage: "memory",
			Subjects: "weir.ack.<job>.<fence>.<kind>.<subtask>",
			Keeps:    "the last fact of each subject, for 10 minutes; open facts are repeated each second",
			Writers:  workers, Readers: leader,
			Purpose: "what subtasks tell the coordinator: ready, ack, committed, input, drained, failed",
		},
		{
			Name: ReportStream, Kind: "stream", Storage: "memory",
			Subjects: "weir.report.<node>",
			Keeps:    "the last report of each node, for 10 minutes",
			Writers:  all, Readers: []string{"progress"},
			Purpose: "batched progress reports",
		},
		{
			Name: EventStream, Kind: "stream", Storage: "file",
			Subjects: "weir.event.<job>.<kind>",
			Keeps:    "7 days, 256 MiB at most; the oldest go first",
			Writers:  all, Readers: []string{"progress", "weir"},
			Purpose: "what happened: state changes, recoveries, refused zombies, skipped epochs",
		},
		{
			Name: "WEIR_EDGE_<job>_<source>", Kind: "stream", Storage: "file",
			Subjects: "weir.edge.<job>.<source>.<collector>",
			Keeps:    "everything from the oldest kept manifest on",
			Writers:  []string{"edge-ingress"}, Readers: []string{"edge-ingress"},
			Purpose: "durable ingress log of an edge source",
		},
		{
			Name: "WEIR_DLQ_<job>", Kind: "stream", Storage: "file",
			Subjects: "weir.dlq.<job>.<sink>.<table>.<epoch>.<index>; weir.dlq.<job>.<sink>",
			Keeps:    "all until a person discards or replays them; refuses new ones when full",
			Writers:  []string{"sink"}, Readers: []string{"sink", "weir"},
			Purpose: "rows that can never apply; for each sink the attempt that may write them",
		},
		{
			Name: StateStream, Kind: "stream", Storage: "file",
			Subjects: "weir.state.<life>.<fence>.<epoch>.<subtask>.<n>.<part>",
			Keeps:    "objects until the coordinator purges their prefix",
			Writers:  all, Readers: all,
			Purpose: "operator state, staged epochs, big manifests, claim checks; digests live in acks and manifests",
		},
		{
			Name: RegistryBucket, Kind: "bucket", Storage: "file",
			Subjects: "leader.term; jobs.<job>.head, .intent, .spec, .plan.<fence>.<term>, .epoch.<n>.<term>, .savepoint.<name>",
			Keeps:    "5 revisions of each key; old epochs and plans are purged by subject",
			Writers:  []string{"coordinator", "weir"}, Readers: append([]string{"progress", "weir"}, all...),
			Purpose: "everything that must be agreed on, by compare-and-swap",
		},
		{
			Name: LeasesBucket, Kind: "bucket", Storage: "memory",
			Subjects: "leader; nodes.<node>",
			Keeps:    "one revision of each key, for one lease; expiry leaves a marker that watchers see",
			Writers:  all, Readers: all,
			Purpose: "time-limited ownership, renewed by compare-and-swap at a third of the lease",
		},
		{
			Name: ProgressBucket, Kind: "bucket", Storage: "memory",
			Subjects: "<job>.<source>, <job>.<source>.reader.<i>, <job>.<source>.enumerator",
			Keeps:    "one revision of each key",
			Writers:  []string{"progress"}, Readers: []string{"progress", "weir"},
			Purpose: "latest progress records",
		},
	}
}
