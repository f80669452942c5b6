package fault

// Codes of the area CLI: the command line. Numbers are never reused (F2); append at the end.
const (
	CLIUsage          Code = "WEIR-CLI-001" // the command is used in a wrong way
	CLINoFile         Code = "WEIR-CLI-002" // the file cannot be read
	CLINotRunning     Code = "WEIR-CLI-003" // no running Weir was found
	CLIWaitTimeout    Code = "WEIR-CLI-004" // the state waited for was not reached in time
	CLIVerifyFailed   Code = "WEIR-CLI-005" // the verification found a difference
	CLINeedsYes       Code = "WEIR-CLI-006" // the command cannot be undone and was not confirmed
	CLINoJob          Code = "WEIR-CLI-007" // there is no such job
	CLISpecDiffers    Code = "WEIR-CLI-008" // a job of this name runs with another spec
	CLIWrongPhase     Code = "WEIR-CLI-009" // the job's phase does not allow this command
	CLIRefused        Code = "WEIR-CLI-010" // the server refused the request
	CLIInterrupted    Code = "WEIR-CLI-011" // the command was interrupted before it was done
	CLIResnapshot     Code = "WEIR-CLI-012" // the tables cannot be copied anew
	CLINoLetter       Code = "WEIR-CLI-013" // there is no such dead letter
	CLIApply          Code = "WEIR-CLI-014" // the spec changes what cannot change within a life
	CLISavepoint      Code = "WEIR-CLI-015" // the savepoint cannot be taken, let go or restored
	CLIAdopt          Code = "WEIR-CLI-016" // the job cannot go on from the ledgers of its sinks
	CLIVerifyDatabase Code = "WEIR-CLI-017" // a database of a verification cannot be used
)

func cliCodes() []Entry {
	return []Entry{
		{
			Code: CLIUsage, Name: "USAGE", Class: Permanent, Exit: ExitRequest,
			Title:  "the command is used in a wrong way",
			Remedy: "See `<command> --help`.",
		},
		{
			Code: CLINoFile, Name: "NO_FILE", Class: Permanent, Exit: ExitRequest,
			Title:  "the file cannot be read",
			Remedy: "Check the path and the rights of <file>.",
		},
		{
			Code: CLINotRunning, Name: "NOT_RUNNING", Class: Permanent, Exit: ExitEnvironment,
			Title:  "no running Weir was found",
			Remedy: "Start one with `weir up`, or name a mesh with --nats or NATS_URL, or the directory of a running one with --data-dir.",
		},
		{
			Code: CLIWaitTimeout, Name: "WAIT_TIMEOUT", Class: Transient, Exit: ExitTimeout,
			Title:  "the state waited for was not reached in time",
			Remedy: "`weir status <job>` says what is not moving and why. Wait longer with --timeout.",
		},
		{
			Code: CLIVerifyFailed, Name: "VERIFY_FAILED", Class: Permanent, Exit: ExitVerify,
			Title:  "the verification found a difference",
			Remedy: "Read the listed differences. `weir epochs show <job> <epoch>` prints the manifest concerned.",
		},
		{
			Code: CLINeedsYes, Name: "NEEDS_YES", Class: Permanent, Exit: ExitRequest,
			Title:  "the command cannot be undone and was not confirmed",
			Remedy: "Add --yes. `weir job drain` ends the job without losing what it has read.",
		},
		{
			Code: CLINoJob, Name: "NO_JOB", Class: Permanent, Exit: ExitRequest,
			Title:  "there is no such job",
			Remedy: "`weir job list` shows the jobs; `weir job submit FILE` makes one.",
		},
		{
			Code: CLISpecDiffers, Name: "SPEC_DIFFERS", Class: Permanent, Exit: ExitRequest,
			Title:  "a job of this name runs with another spec",
			Remedy: "When only its tables differ: `weir job apply <file>`. Otherwise submit it under another name, or cancel the running job first: `weir job cancel <job>`.",
		},
		{
			Code: CLIWrongPhase, Name: "WRONG_PHASE", Class: Permanent, Exit: ExitRequest,
			Title:  "the job's phase does not allow this command",
			Remedy: "`weir status <job>` shows the phase. Allowed from here: <allowed>.",
		},
		{
			Code: CLIRefused, Name: "REFUSED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the server refused the request",
			Remedy: "Read the reason, then repeat the command.",
		},
		{
			Code: CLIInterrupted, Name: "INTERRUPTED", Class: Permanent, Exit: ExitInterrupt,
			Title:  "the command was interrupted before it was done",
			Remedy: "What it had asked for goes on without it: `weir job list` and `weir status <job>` show how far it is.",
		},
		{
			Code: CLIResnapshot, Name: "RESNAPSHOT_REFUSED", Class: Permanent, Exit: ExitRequest,
			Title:  "the tables cannot be copied anew",
			Remedy: "Name tables as `weir status <job>` shows them, and set allow: [truncate] at sinks that are to be emptied.",
		},
		{
			Code: CLINoLetter, Name: "NO_LETTER", Class: Permanent, Exit: ExitRequest,
			Title:  "there is no such dead letter",
			Remedy: "`weir dlq list <job>` shows the letters with their names.",
		},
		{
			Code: CLIApply, Name: "APPLY_REFUSED", Class: Permanent, Exit: ExitRequest,
			Title:  "the spec changes what cannot change while the job lives",
			Remedy: "Tables of a source, its readers, heartbeat and chunk_rows, writers and allow of a sink, epoch and restart may change. Take <path> back, or submit the file as another job: another name, and targets of its own or existing: truncate.",
		},
		{
			Code: CLISavepoint, Name: "SAVEPOINT_REFUSED", Class: Permanent, Exit: ExitRequest,
			Title:  "the savepoint cannot be taken, let go or restored",
			Remedy: "`weir savepoints list <job>` shows the savepoints, `weir status <job>` the phase.",
		},
		{
			Code: CLIAdopt, Name: "ADOPT_REFUSED", Class: Permanent, Exit: ExitRequest,
			Title:  "the job cannot go on from the ledgers of its sinks",
			Remedy: "Bring the newer copy of the bus back, or submit the job under a new name with existing: truncate, which copies everything.",
		},
		{
			Code: CLIVerifyDatabase, Name: "VERIFY_DATABASE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "a database of the verification cannot be used",
			Remedy: "Correct the URL, or the server as told: the source needs wal_level = logical and a login that may create schemas, publications and replication slots, the target one that may create schemas. docs/verify.md has both.",
		},
	}
}
