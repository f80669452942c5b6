package fault

// Codes of the area APP: processes and their shells. Numbers are never reused (F2); append at the end.
const (
	AppInternal     Code = "WEIR-APP-001" // internal error
	AppListenTaken  Code = "WEIR-APP-002" // the address is already in use
	AppForced       Code = "WEIR-APP-003" // stopped by a second signal before the work was finished
	AppStopTimeout  Code = "WEIR-APP-004" // the process did not stop within its grace period
	AppDirLocked    Code = "WEIR-APP-005" // the data directory is in use by another process
	AppDirUnusable  Code = "WEIR-APP-006" // the data directory cannot be used
	AppListenFailed Code = "WEIR-APP-007" // cannot listen on the address
	AppNotReady     Code = "WEIR-APP-008" // the process is not ready
)

func appCodes() []Entry {
	return []Entry{
		{
			Code: AppInternal, Name: "INTERNAL", Class: Bug, Exit: ExitInternal,
			Title:  "internal error",
			Remedy: "This is a defect of Weir. The job restarts from its last durable epoch. Please report it with the log of this process.",
		},
		{
			Code: AppListenTaken, Name: "LISTEN_TAKEN", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the address is already in use",
			Remedy: "Stop the process that listens on <addr>, or choose another address with <flag>.",
		},
		{
			Code: AppForced, Name: "FORCED_STOP", Class: Transient, Exit: ExitInterrupt,
			Title:  "stopped by a second signal before the work was finished",
			Remedy: "Nothing durable is lost. Start the process again; its jobs go on from their last durable epoch.",
		},
		{
			Code: AppStopTimeout, Name: "STOP_TIMEOUT", Class: Transient, Exit: ExitTimeout,
			Title:  "the process did not stop within its grace period",
			Remedy: "Nothing durable is lost. Raise shutdown_timeout when the sinks need longer to finish a commit.",
		},
		{
			Code: AppDirLocked, Name: "DIR_LOCKED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the data directory is in use by another process",
			Remedy: "Stop the other `weir up`, or give this one its own directory with --data-dir.",
		},
		{
			Code: AppDirUnusable, Name: "DIR_UNUSABLE", Class: Permanent, Exit: ExitEnvironment,
			Title:  "the data directory cannot be used",
			Remedy: "Make <dir> a directory that this user can read and write, or give another one with --data-dir.",
		},
		{
			Code: AppListenFailed, Name: "LISTEN_FAILED", Class: Permanent, Exit: ExitEnvironment,
			Title:  "cannot listen on the address",
			Remedy: "Give an address of this host that the user may use with <flag>, such as 127.0.0.1:8422.",
		},
		{
			Code: AppNotReady, Name: "NOT_READY", Class: Transient, Exit: ExitInternal,
			Title:  "the process is not ready",
			Remedy: "Look at the checks that failed, and at the log of the process; `health` asks the address of http, which has to be set for both.",
		},
	}
}
