package progress

import (
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

// StaleAfter is the age at which a report is called old: nodes send one each second.
const StaleAfter = 5 * time.Second

// Status is what is known of one job at one moment.
type Status struct {
	Job    string     `json:"job"`
	Life   string     `json:"life"`
	Phase  job.Phase  `json:"phase"`
	Fence  uint64     `json:"fence"`
	Term   uint64     `json:"term"`
	Reason job.Reason `json:"reason"`
	Epoch  Epochs     `json:"epoch"`
	// Guarantee is what was asked for and what holds.
	Guarantee Guarantee `json:"guarantee"`
	// Sources and Sinks are in the order of the spec.
	Sources []Source `json:"sources"`
	Sinks   []Sink   `json:"sinks"`
	// Why says in words what keeps the job from moving; empty when nothing does.
	Why []string `json:"why"`
	// Findings are the same and more, for programs: each with its kind.
	Findings []Finding `json:"findings,omitempty"`
	At       time.Time `json:"at"`
}

// Detail is a job's status with the section that STIP-30 asks for.
type Detail struct {
	Status

	// CDC is absent for a job without a source that reads a database's log, and while none of its readers reports.
	CDC *CDC `json:"cdcProgress,omitempty"`
	// Recoveries are the recent ones, newest first.
	Recoveries []RecoveryLine `json:"recoveries,omitempty"`
}

// DetailOf makes the detail of an observation.
func DetailOf(o Observation) Detail {
	d := Detail{Status: Build(o)}
	d.CDC = CDCOf(&d.Status)
	d.Recoveries = o.recoveries()
	return d
}

// Epochs is how far the job is.
type Epochs struct {
	InFlight      uint64    `json:"inFlight,omitempty"`
	InFlightSince time.Time `json:"inFlightSince,omitzero"`
	// WaitsFor are the subtasks that have not passed the barrier of the epoch in flight.
	WaitsFor  []string `json:"waitsFor,omitempty"`
	Durable   uint64   `json:"durable"`
	Committed uint64   `json:"committed"`
	// Skipped counts epochs given up in a row.
	Skipped   int       `json:"skipped,omitempty"`
	DurableAt time.Time `json:"durableAt,omitzero"`
	// Restarts counts the recent recoveries, as far as the restart policy looks back.
	Restarts int `json:"restarts,omitempty"`
	// Delay is what of the newest committed epoch went by where; absent before the first.
	Delay *EpochDelay `json:"delay,omitempty"`
}

// Guarantee is what a job keeps at the moment.
type Guarantee struct {
	// Asked is that of the spec, Effective what holds now.
	Asked     spec.Guarantee `json:"asked"`
	Effective spec.Guarantee `json:"effective"`
	// Why says what lowers it.
	Why string `json:"why,omitempty"`
}

// Source is the progress of one source.
type Source struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Lifecycle is that of the readers of the log; UNKNOWN while one does not report, or when they differ: Mixed.
	Lifecycle report.Lifecycle `json:"lifecycle"`
	Mixed     bool             `json:"mixed,omitempty"`
	Recovery  Recovery         `json:"recovery,omitzero"`
	Health    Health           `json:"health,omitzero"`
	Summary   Summary          `json:"summary,omitzero"`
	Readers   []Reader         `json:"readers"`
	// Enumerator is absent while it does not report.
	Enumerator *report.Enumerator `json:"enumerator,omitempty"`
	// EnumeratorAge is that of the enumerator's report.
	EnumeratorAge time.Duration `json:"enumeratorAge,omitempty"`
	Tables        []Table       `json:"tables"`
	// TablesTruncated says that an answer leaves tables out.
	TablesTruncated bool `json:"tablesTruncated,omitempty"`
}

// Recovery is how a source came to where it is.
type Recovery struct {
	State report.Recovery `json:"state"`
	// Epoch is the one this attempt began from; absent when it began from nothing.
	Epoch uint64 `json:"epoch,omitempty"`
}

// Health is what is seen of a source.
type Health struct {
	State  report.Health       `json:"state"`
	Source report.HealthSource `json:"source"`
	Reason string              `json:"reason,omitempty"`
}

// Summary counts what a source's tasks report. Counts of splits are the enumerator's.
type Summary struct {
	Tasks   int `json:"tasks"`
	Fresh   int `json:"fresh"`
	Stale   int `json:"stale"`
	Missing int `json:"missing"`
	// Total is how many splits there will be; no value while that is not known.
	Total report.Value[uint64] `json:"total"`
	// Rows are those of the attempt, over all readers; no value while one of them is missing.
	Rows report.Value[uint64] `json:"rows"`
}

// Reader is one reader's report with its freshness; age is not accuracy.
type Reader struct {
	Subtask string        `json:"subtask"`
	Node    string        `json:"node"`
	Age     time.Duration `json:"age"`
	report.Reader
	Stale bool `json:"stale,omitempty"`
	// Sequence numbers the reports of the attempt.
	Sequence uint64 `json:"sequence,omitempty"`
	// Observed is when the report was made, by its node's clock.
	Observed time.Time `json:"observed,omitzero"`
	// ActiveTable is the table of the active split.
	ActiveTable string `json:"activeTable,omitempty"`
	// Candidate is the reader's cut of the epoch in flight, Durable that of the newest durable epoch, Completed that of the
	// newest one that is committed at every sink.
	Candidate report.Value[position.Position] `json:"candidate,omitzero"`
	Durable   report.Value[position.Position] `json:"durable,omitzero"`
	Completed report.Value[position.Position] `json:"completed,omitzero"`
	// Restore is what the engine restored the reader from.
	Restore *report.Restore `json:"restore,omitempty"`
	// RoundTrip is how long the newest beat took from the source's log to the sinks and back, without what nobody waited for.
	// Pending is for how long the one on its way has been so, when the report was made; no value while nothing waits for it.
	RoundTrip report.Value[time.Duration] `json:"roundTrip,omitzero"`
	Pending   report.Value[time.Duration] `json:"pending,omitzero"`
	// Behind is how far the source's head was ahead when it was seen last.
	Behind Behind `json:"behind,omitzero"`
	// Forecast is when the log that the source keeps will be lost; absent of a reader without the log.
	Forecast Forecast `json:"forecast,omitzero"`
}

// Behind is a distance within one family of positions.
type Behind struct {
	Value report.Value[uint64] `json:"value"`
	Unit  position.Unit        `json:"unit,omitempty"`
}

// Table is one table of a source.
type Table struct {
	report.Table

	// Copied counts the rows that the present copy has read.
	Copied report.Value[uint64] `json:"copied,omitzero"`
}

// Sink is the progress of one sink.
type Sink struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Mode string `json:"mode"`
	// Claimed is what the target's ledger held when this attempt began.
	Claimed *job.LedgerRow `json:"claimed,omitempty"`
	// Committed is the newest epoch that the committer says it has applied; absent when it says nothing.
	Committed uint64 `json:"committed,omitempty"`
	// Waiting is why commits do not go through, and since when.
	Waiting *job.Trouble `json:"waiting,omitempty"`
	// Dead counts the dead letters that are there: rows set aside and neither replayed nor discarded.
	Dead uint64 `json:"dead,omitempty"`
}

// FindingKind is a word for what was found.
type FindingKind string

// The kinds of findings.
const (
	Failed        FindingKind = "failed"
	Starting      FindingKind = "starting"
	Restarting    FindingKind = "restarting"
	SlotLost      FindingKind = "slot_lost"
	SourceDown    FindingKind = "source_down"
	NoNode        FindingKind = "no_node"
	SinkBlocked   FindingKind = "sink_blocked"
	EpochWaits    FindingKind = "epoch_waits"
	EpochsSkipped FindingKind = "epochs_skipped"
	ReportOld     FindingKind = "report_old"
	ReportMissing FindingKind = "report_missing"
	SourceStalled FindingKind = "source_stalled"
	SourceWaits   FindingKind = "source_waits"
	LettersFill   FindingKind = "letters_fill"
	// LogRunsOut, SourceIdle, LettersKept and RestartedNote keep nothing from moving.
	LogRunsOut    FindingKind = "log_runs_out"
	SourceIdle    FindingKind = "source_idle"
	LettersKept   FindingKind = "letters_kept"
	RestartedNote FindingKind = "restarted"
)

// Finding is one piece of evidence.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Note says that it keeps nothing from moving.
	Note bool `json:"note,omitempty"`
	// About names the source, sink or subtask.
	About string `json:"about,omitempty"`
	Text  string `json:"text"`
	// Since is when it began, where that is known.
	Since  time.Time `json:"since,omitzero"`
	Remedy string    `json:"remedy,omitempty"`
}
