package telemetry

// Keys of log attributes; they are also the names of span attributes and, without KeyError and KeyEpoch, of metric
// attributes.
const (
	KeyService = "service"
	KeyNode    = "node"
	KeyJob     = "job"
	KeyLife    = "life"
	KeyFence   = "fence"
	KeyTerm    = "term"
	KeyVertex  = "vertex"
	KeySubtask = "subtask"
	KeySource  = "source"
	KeySink    = "sink"
	KeyTable   = "table"
	KeySplit   = "split"
	KeyEpoch   = "epoch"
	KeyPhase   = "phase"
	KeyReason  = "reason"
	KeyStream  = "stream"
	KeyAddr    = "addr"
	KeyError   = "error"
)
