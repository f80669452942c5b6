package fault

// Codes of the area JOB: jobs, epochs, placement and recovery. Numbers are never reused (F2); append at the end.
const (
	JobNoCapacity        Code = "WEIR-JOB-001" // no node can take a subtask
	JobLedgerAhead       Code = "WEIR-JOB-002" // the target has an epoch that the bus does not know
	JobLedgerForeign     Code = "WEIR-JOB-003" // the target's ledger belongs to another life of the job
	JobLedgerDiverged    Code = "WEIR-JOB-004" // the target's ledger is neither at this epoch nor at the one before
	JobHeadRegressed     Code = "WEIR-JOB-005" // the head record is older than one already seen
	JobBusRegressed      Code = "WEIR-JOB-006" // a stream is shorter than it was
	JobDataLost          Code = "WEIR-JOB-007" // in-flight rows were lost on the way
	JobTallyMismatch     Code = "WEIR-JOB-008" // the two ends of a channel counted differently
	JobDrainTimeout      Code = "WEIR-JOB-009" // the drain did not finish in time
	JobStartTimeout      Code = "WEIR-JOB-010" // the subtasks were not all ready in time
	JobRestartsExhausted Code = "WEIR-JOB-011" // the job failed again and again
	JobSinkDown          Code = "WEIR-JOB-012" // a sink does not take commits
	JobEpochTimeout      Code = "WEIR-JOB-013" // an epoch did not become durable in time
	JobNodeLost          Code = "WEIR-JOB-014" // a node of the job went away
	JobFenced            Code = "WEIR-JOB-015" // another attempt of the job has taken over
	JobUnhealthy         Code = "WEIR-JOB-016" // the job makes no progress
	JobManifestLost      Code = "WEIR-JOB-017" // a manifest that the head record names cannot be read
	JobStateLost         Code = "WEIR-JOB-018" // a state object that the manifest names cannot be read
	JobChainBroken       Code = "WEIR-JOB-019" // the chain of manifests is broken
	JobGuarantee         Code = "WEIR-JOB-020" // the job cannot give the guarantee it asks for
	JobNeedsMode         Code = "WEIR-JOB-021" // a stop needs a mode
	JobPlanChanged       Code = "WEIR-JOB-022" // the new spec does not fit the state of the job
)

func jobCodes() []Entry {
	return []Entry{
		{
			Code: JobNoCapacity, Name: "NO_CAPACITY", Class: Transient, Exit: ExitEnvironment,
			Title:  "no node can take a subtask",
			Remedy: "Start a process with the role <role>: `weir serve <role>`.",
		},
		{
			Code: JobLedgerAhead, Name: "LEDGER_AHEAD", Class: Permanent, Exit: ExitVerify,
			Title:  "the target has an epoch that the bus does not know",
			Remedy: "The bus was restored from an older copy, or another mesh writes this target. `weir job adopt <job>` goes on from where the targets are, when all of them are at the same place. Else bring the newer copy of the bus back, or submit the job under a new name with existing: truncate.",
		},
		{
			Code: JobLedgerForeign, Name: "LEDGER_FOREIGN", Class: Permanent, Exit: ExitVerify,
			Title:  "the target's ledger belongs to another life of the job",
			Remedy: "Give the job another name or the sink another target. When the bus that wrote there is lost for good, `weir job adopt <job>` goes on in its place.",
		},
		{
			Code: JobLedgerDiverged, Name: "LEDGER_DIVERGED", Class: Permanent, Exit: ExitVerify,
			Title:  "the target's ledger is neither at this epoch nor at the one before",
			Remedy: "Stop whatever else writes the ledger of this job; `weir epochs verify <job>` shows where the histories part. Then submit the job under a new name with existing: truncate.",
		},
		{
			Code: JobHeadRegressed, Name: "HEAD_REGRESSED", Class: Permanent, Exit: ExitVerify,
			Title:  "the head record is older than one already seen",
			Remedy: "The bus was restored from an older copy; `weir epochs verify <job>` shows the loss. Bring the newer copy back, or submit the job under a new name with existing: truncate.",
		},
		{
			Code: JobBusRegressed, Name: "BUS_REGRESSED", Class: Permanent, Exit: ExitVerify,
			Title:  "a stream is shorter than it was",
			Remedy: "The bus lost messages or was restored from an older copy. In-flight rows are read again from the source by themselves; for a lost manifest bring the newer copy back, or submit the job under a new name with existing: truncate.",
		},
		{
			Code: JobDataLost, Name: "DATA_LOST", Class: Transient, Exit: ExitInternal,
			Title:  "in-flight rows were lost on the way",
			Remedy: "Nothing to do: the attempt fails and the rows are read again from the last durable epoch. When it repeats, look at the limits of the data stream.",
		},
		{
			Code: JobTallyMismatch, Name: "TALLY_MISMATCH", Class: Bug, Exit: ExitVerify,
			Title:  "the two ends of a channel counted differently",
			Remedy: "Nothing was committed; the attempt fails and the rows are read again. When it repeats, please report it with the output of `weir epochs show <job>`.",
		},
		{
			Code: JobDrainTimeout, Name: "DRAIN_TIMEOUT", Class: Permanent, Exit: ExitTimeout,
			Title:  "the drain did not finish in time",
			Remedy: "Everything durable is kept. `weir job resume <job>` goes on; drain again with a longer --timeout.",
		},
		{
			Code: JobStartTimeout, Name: "START_TIMEOUT", Class: Transient, Exit: ExitTimeout,
			Title:  "the subtasks were not all ready in time",
			Remedy: "`weir status <job>` names the subtask that is missing and why.",
		},
		{
			Code: JobRestartsExhausted, Name: "RESTARTS_EXHAUSTED", Class: Permanent, Exit: ExitInternal,
			Title:  "the job failed again and again",
			Remedy: "Repair the reason shown, then `weir job resume <job>`: it goes on from the last durable epoch. restart.window and restart.cap set the limit.",
		},
		{
			Code: JobSinkDown, Name: "SINK_DOWN", Class: Transient, Exit: ExitEnvironment,
			Title:  "a sink does not take commits",
			Remedy: "Nothing is lost and the source waits. Bring the target back; the commit is repeated by itself.",
		},
		{
			Code: JobEpochTimeout, Name: "EPOCH_TIMEOUT", Class: Transient, Exit: ExitTimeout,
			Title:  "an epoch did not become durable in time",
			Remedy: "The epoch is skipped and the next one covers it. When it repeats, raise epoch.timeout or see `weir status <job>` for the slow part.",
		},
		{
			Code: JobNodeLost, Name: "NODE_LOST", Class: Transient, Exit: ExitEnvironment,
			Title:  "a node of the job went away",
			Remedy: "Nothing to do: the job restarts from its last durable epoch on the nodes that are left.",
		},
		{
			Code: JobFenced, Name: "FENCED", Class: Fenced, Exit: ExitInternal,
			Title:  "another attempt of the job has taken over",
			Remedy: "Nothing to do: the older attempt stops and writes nothing more.",
		},
		{
			Code: JobUnhealthy, Name: "STALLED", Class: Transient, Exit: ExitTimeout,
			Title:  "the job makes no progress",
			Remedy: "`weir status <job>` says which part waits for what.",
		},
		{
			Code: JobManifestLost, Name: "MANIFEST_LOST", Class: Permanent, Exit: ExitVerify,
			Title:  "a manifest that the head record names cannot be read",
			Remedy: "Bring back a copy of the bus that has it, or submit the job under a new name with existing: truncate.",
		},
		{
			Code: JobStateLost, Name: "STATE_LOST", Class: Permanent, Exit: ExitVerify,
			Title:  "a state object that the manifest names cannot be read",
			Remedy: "Go on from an epoch whose state is there: `weir job rewind <job>`, or `weir job restore <job> SAVEPOINT`. Otherwise bring back a copy of the bus that has it.",
		},
		{
			Code: JobChainBroken, Name: "CHAIN_BROKEN", Class: Permanent, Exit: ExitVerify,
			Title:  "the chain of manifests is broken",
			Remedy: "`weir epochs verify <job>` names the epoch; nothing after it is trusted. Submit the job under a new name with existing: truncate.",
		},
		{
			Code: JobGuarantee, Name: "GUARANTEE", Class: Permanent, Exit: ExitRequest,
			Title:  "the job cannot give the guarantee it asks for",
			Remedy: "Use a source that can be read again and a sink that commits atomically on every path.",
		},
		{
			Code: JobNeedsMode, Name: "STOP_NEEDS_MODE", Class: Permanent, Exit: ExitRequest,
			Title:  "a stop needs a mode",
			Remedy: "Use `weir job drain` to finish or `weir job cancel` to end at once.",
		},
		{
			Code: JobPlanChanged, Name: "PLAN_CHANGED", Class: Permanent, Exit: ExitRequest,
			Title:  "the new spec does not fit the state of the job",
			Remedy: "Keep the named field as it was, or submit the job under a new name.",
		},
	}
}
