package fault

// Codes of the area BUS: NATS and JetStream. Numbers are never reused (F2); append at the end.
const (
	BusUnreachable Code = "WEIR-BUS-001" // cannot reach NATS
	BusAuth        Code = "WEIR-BUS-002" // NATS refused the credentials
	BusRights      Code = "WEIR-BUS-003" // the NATS user may not use a subject that Weir needs
	BusNoJetStream Code = "WEIR-BUS-004" // the NATS server has no JetStream
	BusTooOld      Code = "WEIR-BUS-005" // the NATS server is too old
	BusFull        Code = "WEIR-BUS-006" // JetStream has no room left
	BusConflict    Code = "WEIR-BUS-007" // another writer was faster
	BusStreamShape Code = "WEIR-BUS-008" // an existing stream or bucket has another configuration than Weir needs
	BusCodec       Code = "WEIR-BUS-009" // a message on the bus cannot be decoded
	BusAmbiguous   Code = "WEIR-BUS-010" // a write may or may not have been stored
	BusMaxPayload  Code = "WEIR-BUS-011" // a message is larger than the server accepts
)

func busCodes() []Entry {
	return []Entry{
		{
			Code: BusUnreachable, Name: "BUS_UNREACHABLE", Class: Transient, Exit: ExitEnvironment,
			Title:  "cannot reach NATS",
			Remedy: "Check that a NATS server listens at <url>, that --nats or NATS_URL names it, and that no firewall is between. `weir up` brings its own server.",
		},
		{
			Code: BusAuth, Name: "BUS_AUTH", Class: Permanent, Exit: ExitEnvironment,
			Title:  "NATS refused the credentials",
			Remedy: "Give a valid credentials file with --creds or NATS_CREDS for this account.",
		},
		{
			Code: BusRights, Name: "BUS_RIGHTS", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the NATS user may not use a subject that Weir needs",
			Remedy: "Grant publish and subscribe on <subject> to this user; `weir bus <job>` lists the subjects of a job.",
		},
		{
			Code: BusNoJetStream, Name: "NO_JETSTREAM", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the NATS server has no JetStream",
			Remedy: "Start the server with -js and a store directory, and enable JetStream for the account.",
		},
		{
			Code: BusTooOld, Name: "BUS_TOO_OLD", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the NATS server is too old",
			Remedy: "Upgrade the server to <want> or newer.",
		},
		{
			Code: BusFull, Name: "BUS_FULL", Class: Transient, Exit: ExitEnvironment,
			Title:  "JetStream has no room left",
			Remedy: "Raise the account's or the server's JetStream limits, or delete streams that are no longer needed; `weir bus <job>` shows those of a job.",
		},
		{
			Code: BusConflict, Name: "BUS_CONFLICT", Class: Transient, Exit: ExitInternal,
			Title:  "another writer was faster",
			Remedy: "Nothing to do: the loser of a compare-and-swap stops and reads again.",
		},
		{
			Code: BusStreamShape, Name: "BUS_STREAM_SHAPE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "an existing stream or bucket has another configuration than Weir needs",
			Remedy: "Delete or rename <stream> if it is not Weir's, or give this mesh its own account.",
		},
		{
			Code: BusCodec, Name: "BUS_CODEC", Class: Bug, Exit: ExitInternal,
			Title:  "a message on the bus cannot be decoded",
			Remedy: "Check that no other program publishes under Weir's subjects, and that every process of the mesh runs the same version.",
		},
		{
			Code: BusAmbiguous, Name: "BUS_AMBIGUOUS", Class: Transient, Exit: ExitEnvironment,
			Title:  "a write may or may not have been stored",
			Remedy: "Nothing to do: Weir reads back what is stored and goes on from there.",
		},
		{
			Code: BusMaxPayload, Name: "BUS_MAX_PAYLOAD", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a message is larger than the server accepts",
			Remedy: "Raise max_payload of the NATS server to at least <want>.",
		},
	}
}
