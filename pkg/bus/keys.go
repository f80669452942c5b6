package bus

import (
	"strconv"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// Keys that do not depend on a name.
const (
	// LeaderTermKey in the registry counts the terms of leaders.
	LeaderTermKey = "leader.term"
	// LeaderKey in the leases is held by the acting leader.
	LeaderKey = "leader"
	// HeadPattern matches the head records of all jobs.
	HeadPattern = "jobs.*.head"
	// IntentPattern matches what people asked for, of all jobs.
	IntentPattern = "jobs.*.intent"
	// NodePattern matches the leases of all nodes.
	NodePattern = "nodes.*"
)

func jobKey(job, part string) string { return "jobs." + EscapeToken(job) + "." + part }

// HeadKey holds the head record of a job.
func HeadKey(job string) string { return jobKey(job, "head") }

// IntentKey holds the last request about a job.
func IntentKey(job string) string { return jobKey(job, "intent") }

// SpecKey holds the spec of a job.
func SpecKey(job string) string { return jobKey(job, "spec") }

// PlanKey holds the plan of one attempt, written create-only by the leader of a term.
func PlanKey(job string, f fence.Token, term uint64) string {
	return jobKey(job, "plan."+f.String()+"."+strconv.FormatUint(term, 10))
}

// EpochKey holds the manifest of an epoch, written create-only by the leader of a term.
func EpochKey(job string, e epoch.ID, term uint64) string {
	return jobKey(job, "epoch."+e.String()+"."+strconv.FormatUint(term, 10))
}

// NodeKey is the lease of a node.
func NodeKey(node string) string { return "nodes." + EscapeToken(node) }

// HoldKey is the lease of a name that one subtask at a time uses.
func HoldKey(name string) string { return "holds." + EscapeToken(name) }

// ProgressKey holds the latest progress record of a source.
func ProgressKey(job, source string) string { return EscapeToken(job) + "." + EscapeToken(source) }

// ProgressReaderKey holds the latest record of one reader of a source.
func ProgressReaderKey(job, source string, reader int) string {
	return ProgressKey(job, source) + ".reader." + strconv.Itoa(reader)
}

// ProgressEnumeratorKey holds the latest record of a source's enumerator.
func ProgressEnumeratorKey(job, source string) string {
	return ProgressKey(job, source) + ".enumerator"
}
