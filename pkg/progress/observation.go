package progress

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

// Observation is what is known of one job at one moment. Only Head and Spec must be there.
type Observation struct {
	At   time.Time
	Head *job.Head
	Spec *spec.Job
	// Plan is that of the head's attempt; nil before it is placed, or when it was not read.
	Plan *plan.Deployment
	// Reports are the newest of the head's own attempt, by subtask.
	Reports map[string]Sample
	// Acks and Commits are the facts of the head's own attempt.
	Acks    map[plan.SubtaskID]epoch.Ack
	Commits map[plan.SubtaskID]job.CommittedFact
	// Durable and Committed are the manifests that the head names; nil where there is none or it could not be read.
	Durable, Committed *epoch.Manifest
	// Nodes are the live processes; nil when they were not read, which is not the same as none.
	Nodes []job.NodeLease
	// Letters count dead letters by sink, Filling those that came within the last minute, where that was watched.
	Letters, Filling map[string]uint64
	// Recovery is the newest recovery that the leader told of; nil when none was read.
	Recovery *job.Notice
}

// Sample is a report as it was found.
type Sample struct {
	report.Envelope

	// Node is the process that sent it.
	Node string
	// Age is how old the report is: since it was first seen, by the clock of whoever looks, when he saw it come; else since it
	// was made, by the clocks of two hosts.
	Age time.Duration
}
