package progress

import (
	"fmt"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
)

// SchemaVersion is that of [CDC].
const SchemaVersion = 1

// MaxTasks bounds the tasks of a source in [CDC]; the summary counts all of them.
const MaxTasks = 100

// pipeline is the only one of a job.
const pipeline = 1

// CDC is the section cdcProgress of a job's detail, in the shape that STIP-30 gives it. Times are milliseconds since 1970.
// What is not known is null, never zero.
type CDC struct {
	SchemaVersion int         `json:"schemaVersion"`
	ObservedAt    int64       `json:"observedAt"`
	Sources       []CDCSource `json:"sources"`
}

// CDCSource is one source that reads a database's log.
type CDCSource struct {
	PipelineID    int              `json:"pipelineId"`
	VertexID      string           `json:"vertexId"`
	ConnectorType string           `json:"connectorType"`
	Lifecycle     report.Lifecycle `json:"lifecycle"`
	Recovery      CDCRecovery      `json:"recovery"`
	Health        CDCHealth        `json:"health"`
	Summary       CDCSummary       `json:"summary"`
	Tasks         []CDCTask        `json:"tasks"`
	// Accuracy is that of each value, by its path in this object.
	Accuracy map[string]report.Accuracy `json:"accuracy"`
	// DetailsTruncated says that there are more tasks than are listed, or more splits at them than are named.
	DetailsTruncated bool `json:"detailsTruncated"`
}

// CDCRecovery is how the source came to where it is.
type CDCRecovery struct {
	State                report.Recovery `json:"state"`
	RestoredCheckpointID *uint64         `json:"restoredCheckpointId"`
}

// CDCHealth is what is seen of it.
type CDCHealth struct {
	State  report.Health       `json:"state"`
	Source report.HealthSource `json:"source"`
	Reason *string             `json:"reason"`
}

// CDCSummary counts tasks, which the framework knows, and splits, which the enumerator reports.
type CDCSummary struct {
	ReaderTaskCount             int     `json:"readerTaskCount"`
	FreshReportCount            int     `json:"freshReportCount"`
	StaleReportCount            int     `json:"staleReportCount"`
	MissingReportCount          int     `json:"missingReportCount"`
	AssignedSplitCount          *uint64 `json:"assignedSplitCount"`
	CompletedSplitCount         *uint64 `json:"completedSplitCount"`
	RunningSplitCount           *uint64 `json:"runningSplitCount"`
	PreparedRemainingSplitCount *uint64 `json:"preparedRemainingSplitCount"`
	RemainingUnchunkedTables    *uint64 `json:"remainingUnchunkedTableCount"`
	FinalTotalSplitCount        *uint64 `json:"finalTotalSplitCount"`
	// HandedOutSplitCount counts what this attempt gave to readers, repetitions included.
	HandedOutSplitCount *uint64 `json:"handedOutSplitCount"`
	// ObservedAt is when the enumerator was seen last.
	ObservedAt *int64 `json:"enumeratorObservedAt"`
}

// CDCSplit is a split at a reader.
type CDCSplit struct {
	SplitID   string  `json:"splitId"`
	TablePath *string `json:"tablePath"`
}

// CDCPosition is a position in the source's own terms.
type CDCPosition struct {
	Type          position.Type     `json:"type"`
	SchemaVersion int               `json:"schemaVersion"`
	Values        map[string]string `json:"values"`
}

// CDCTask is the newest report of one reader.
type CDCTask struct {
	TaskIndex                       int              `json:"taskIndex"`
	ExecutionAttemptID              string           `json:"executionAttemptId"`
	ReportSequence                  uint64           `json:"reportSequence"`
	ObservedAt                      int64            `json:"observedAt"`
	LastPositionChangeAt            *int64           `json:"lastPositionChangeAt"`
	LastSourceEventAt               *int64           `json:"lastSourceEventAt"`
	Lifecycle                       report.Lifecycle `json:"lifecycle"`
	ActiveSplit                     *CDCSplit        `json:"activeSplit"`
	StartupPosition                 *CDCPosition     `json:"startupPosition"`
	CurrentConsumedPosition         *CDCPosition     `json:"currentConsumedPosition"`
	CheckpointCandidatePosition     *CDCPosition     `json:"checkpointCandidatePosition"`
	LastDurablePosition             *CDCPosition     `json:"lastDurablePosition"`
	LastCompletedCheckpointPosition *CDCPosition     `json:"lastCompletedCheckpointPosition"`
	RestoredPosition                *CDCPosition     `json:"restoredPosition"`
	FirstPositionAfterRestore       *CDCPosition     `json:"firstPositionAfterRestore"`
	SourceHighWatermark             *CDCPosition     `json:"sourceHighWatermark"`
	SourceHighWatermarkObservedAt   *int64           `json:"sourceHighWatermarkObservedAt"`
}

// connectorType names the sources that read a database's log, as STIP-30 calls them.
func connectorType(kind string) (name string, ok bool) {
	switch kind {
	case "mysql":
		return "MySQL-CDC", true
	case "postgres":
		return "PostgreSQL-CDC", true
	}
	return "", false
}

// CDCOf makes the section of a status; nil for a job without such a source, and while no report of one is there.
func CDCOf(s *Status) *CDC {
	c := &CDC{SchemaVersion: SchemaVersion, ObservedAt: s.At.UnixMilli(), Sources: []CDCSource{}}
	reported := false
	for i := range s.Sources {
		kind, ok := connectorType(s.Sources[i].Type)
		if !ok {
			continue
		}
		reported = reported || len(s.Sources[i].Readers) > 0 || s.Sources[i].Enumerator != nil
		c.Sources = append(c.Sources, cdcSource(s, &s.Sources[i], kind))
	}
	if !reported {
		return nil
	}
	return c
}

func cdcSource(st *Status, s *Source, kind string) CDCSource {
	out := CDCSource{
		PipelineID: pipeline, VertexID: s.Name, ConnectorType: kind, Lifecycle: s.Lifecycle,
		Recovery: CDCRecovery{State: s.Recovery.State}, Health: CDCHealth{State: s.Health.State, Source: s.Health.Source},
		Tasks: []CDCTask{}, Accuracy: make(map[string]report.Accuracy),
	}
	if s.Recovery.Epoch != 0 {
		out.Recovery.RestoredCheckpointID = &s.Recovery.Epoch
	}
	if s.Health.Reason != "" {
		out.Health.Reason = &s.Health.Reason
	}
	out.Summary = CDCSummary{
		ReaderTaskCount: s.Summary.Tasks, FreshReportCount: s.Summary.Fresh, StaleReportCount: s.Summary.Stale, MissingReportCount: s.Summary.Missing,
	}
	e := s.Enumerator
	if e == nil {
		e = &report.Enumerator{}
	} else {
		out.Summary.ObservedAt = millis(st.At.Add(-s.EnumeratorAge))
		out.DetailsTruncated = e.ActiveTruncated
	}
	for _, v := range []struct {
		path string
		to   **uint64
		from report.Value[uint64]
	}{
		{"assignedSplitCount", &out.Summary.AssignedSplitCount, e.Assigned},
		{"completedSplitCount", &out.Summary.CompletedSplitCount, e.Completed},
		{"runningSplitCount", &out.Summary.RunningSplitCount, e.Running},
		{"preparedRemainingSplitCount", &out.Summary.PreparedRemainingSplitCount, e.PreparedUnsent},
		{"remainingUnchunkedTableCount", &out.Summary.RemainingUnchunkedTables, e.TablesNotChunked},
		{"finalTotalSplitCount", &out.Summary.FinalTotalSplitCount, s.Summary.Total},
		{"handedOutSplitCount", &out.Summary.HandedOutSplitCount, e.HandedOut},
	} {
		*v.to = get(v.from)
		out.Accuracy["summary."+v.path] = v.from.Accuracy()
	}
	for i := range s.Readers {
		if i == MaxTasks {
			out.DetailsTruncated = true
			break
		}
		out.Tasks = append(out.Tasks, cdcTask(st, &s.Readers[i], fmt.Sprintf("tasks[%d].", i), out.Accuracy))
	}
	return out
}

func cdcTask(st *Status, r *Reader, path string, accuracy map[string]report.Accuracy) CDCTask {
	t := CDCTask{
		TaskIndex: TaskIndex(r.Subtask), ExecutionAttemptID: fmt.Sprint("attempt-", st.Fence), ReportSequence: r.Sequence,
		ObservedAt: r.Observed.UnixMilli(), Lifecycle: r.Lifecycle,
	}
	if split, ok := r.ActiveSplit.Get(); ok {
		t.ActiveSplit = &CDCSplit{SplitID: split}
		if r.ActiveTable != "" {
			t.ActiveSplit.TablePath = &r.ActiveTable
		}
	}
	accuracy[path+"activeSplit"] = r.ActiveSplit.Accuracy()
	restored, first := report.Value[position.Position]{}, report.Value[position.Position]{}
	if r.Restore != nil {
		restored, first = r.Restore.Position, r.Restore.First
	}
	head := headPosition(r.Head)
	for _, v := range []struct {
		path string
		to   **CDCPosition
		from report.Value[position.Position]
	}{
		{"startupPosition", &t.StartupPosition, r.Restored},
		{"currentConsumedPosition", &t.CurrentConsumedPosition, r.Consumed},
		{"checkpointCandidatePosition", &t.CheckpointCandidatePosition, r.Candidate},
		{"lastDurablePosition", &t.LastDurablePosition, r.Durable},
		{"lastCompletedCheckpointPosition", &t.LastCompletedCheckpointPosition, r.Completed},
		{"restoredPosition", &t.RestoredPosition, restored},
		{"firstPositionAfterRestore", &t.FirstPositionAfterRestore, first},
		{"sourceHighWatermark", &t.SourceHighWatermark, head},
	} {
		accuracy[path+v.path] = v.from.Accuracy()
		if p, ok := v.from.Get(); ok {
			*v.to = &CDCPosition{Type: p.Type, SchemaVersion: p.Version, Values: p.Fields}
		}
	}
	if h, ok := r.Head.Get(); ok {
		t.SourceHighWatermarkObservedAt = millis(h.At)
	}
	for _, v := range []struct {
		path string
		to   **int64
		from report.Value[time.Time]
	}{
		{"lastPositionChangeAt", &t.LastPositionChangeAt, r.LastChange},
		{"lastSourceEventAt", &t.LastSourceEventAt, r.LastEvent},
	} {
		accuracy[path+v.path] = v.from.Accuracy()
		if at, ok := v.from.Get(); ok {
			*v.to = millis(at)
		}
	}
	return t
}

func headPosition(h report.Value[report.SourceHead]) report.Value[position.Position] {
	v, ok := h.Get()
	switch {
	case ok && h.Accuracy() == report.Exact:
		return report.ExactOf(v.Position)
	case ok:
		return report.BestEffortOf(v.Position)
	case h.Accuracy() == report.Unsupported:
		return report.UnsupportedOf[position.Position]()
	}
	return report.Value[position.Position]{}
}

func get(v report.Value[uint64]) *uint64 {
	if n, ok := v.Get(); ok {
		return &n
	}
	return nil
}

func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}
