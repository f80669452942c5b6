package plan

import (
	"strings"

	"weir.dev/weir/pkg/spec"
)

// Replay says whether a source can be read again from a position.
type Replay string

// The two kinds of sources.
const (
	Replayable    Replay = "REPLAYABLE"
	NotReplayable Replay = "NOT_REPLAYABLE"
)

// Level is what a sink can promise.
type Level string

// The levels, best first.
const (
	// Transactional: staged rows and ledger become visible in one step.
	Transactional Level = "TRANSACTIONAL"
	// Ordered: exactly once, but not epoch by epoch.
	Ordered    Level = "ORDERED"
	Idempotent Level = "IDEMPOTENT"
	AppendOnly Level = "APPEND_ONLY"
)

// exact reports whether rows reach such a sink exactly once.
func (l Level) exact() bool { return l == Transactional || l == Ordered }

// SourceReplay tells what the known kinds of sources can do; ok is false for a kind nobody has declared here. The live
// check of the real source happens when an attempt starts.
func SourceReplay(kind string) (r Replay, ok bool) {
	switch kind {
	case "postgres", "mysql", "edge", "generator":
		return Replayable, true
	}
	return "", false
}

// SinkLevel tells what the known kinds of sinks promise; ok is false for a kind nobody has declared here.
func SinkLevel(kind string) (l Level, ok bool) {
	switch kind {
	case "postgres", "mysql", "iceberg", "files", "blackhole":
		return Transactional, true
	case "nats":
		return Ordered, true
	}
	return "", false
}

// LevelOf tells what a sink promises with its configuration; ok is false for a kind nobody has declared here.
func LevelOf(s spec.Sink) (l Level, ok bool) {
	if ice, is := s.Config.(*spec.IcebergSink); is && ice.REST.Commit == spec.CommitOrdered {
		return Ordered, true
	}
	return SinkLevel(s.Type)
}

// SourceCapability is what a node must offer to host a source of this kind.
func SourceCapability(kind string) string { return "source:" + kind }

// SinkCapability is what a node must offer to host a sink of this kind.
func SinkCapability(kind string) string { return "sink:" + kind }

// ServiceOf is the service that a person starts to add a capability.
func ServiceOf(capability string) string {
	switch side, kind, _ := strings.Cut(capability, ":"); {
	case side == "sink":
		return "sink"
	case kind == "postgres" || kind == "mysql":
		return "cdc-" + kind
	case kind == "edge":
		return "edge-ingress"
	case kind == "generator": // it rides along
		return "cdc-postgres"
	}
	return capability
}

// colocated reports whether the writers and the committer of such a sink must share a node, because what is staged
// lies in its file system.
func colocated(capability string) bool {
	return capability == SinkCapability("files") || capability == SinkCapability("iceberg")
}
