package verify

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// ReportVersion is the version of the report's JSON form, see schemas/verification.schema.json.
const ReportVersion = 1

// Report is the outcome of a verification.
type Report struct {
	Version int `json:"version"`
	// Claim is what was verified, source to target.
	Claim string `json:"claim"`
	// Command can be typed again; URLs in it have no passwords.
	Command string `json:"command"`
	// Revision is that of the program, Go and OS what it was built with and runs on.
	Revision string    `json:"revision"`
	Go       string    `json:"go"`
	OS       string    `json:"os"`
	Source   string    `json:"source"`
	Target   string    `json:"target"`
	Begun    time.Time `json:"begun"`
	Finished time.Time `json:"finished"`
	// Seconds is the total time.
	Seconds float64 `json:"seconds"`
	Passed  bool    `json:"passed"`
	Classes []Class `json:"classes"`
	// All sums up all classes; it has no trigger and no mode. Reports of older programs lack it.
	All *Class `json:"all,omitempty"`
	// LeftOut are the classes that mean nothing between this source and this target.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	Results []Result  `json:"results"`
}

// LeftOut is a class that does not run here, and why.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Class sums up the results of one failure class.
type Class struct {
	Name    string `json:"name"`
	Trigger string `json:"trigger,omitempty"`
	// Mode is how it recovers: by itself, or by a command.
	Mode   string `json:"mode,omitempty"`
	Runs   int    `json:"runs"`
	Failed int    `json:"failed"`
	// Detect, Durable and Reconciled are seconds from the fault on, see [Fault] and [Result].
	Detect     *Spread `json:"detect,omitempty"`
	Durable    *Spread `json:"durable,omitempty"`
	Reconciled *Spread `json:"reconciled,omitempty"`
}

// Spread is a distribution in brief.
type Spread struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// Result is one run of one class with one seed.
type Result struct {
	Class string `json:"class"`
	// Run names the run and everything it made at the databases.
	Run    string `json:"run"`
	Seed   uint64 `json:"seed"`
	Passed bool   `json:"passed"`
	// Findings are what does not hold, in no order of weight; empty when it passed.
	Findings []string  `json:"findings"`
	Begun    time.Time `json:"begun"`
	Seconds  float64   `json:"seconds"`
	// Reconciled is the seconds from the first fault until source and target were found equal.
	Reconciled *float64 `json:"reconciled,omitempty"`
	Faults     []Fault  `json:"faults"`
	Rows       *Rows    `json:"rows,omitempty"`
	Events     *Events  `json:"events,omitempty"`
	Ledgers    []Ledger `json:"ledgers,omitempty"`
	Readers    []Reader `json:"readers,omitempty"`
	// Judged says that ClickHouse has read the tables, too, and found the same.
	Judged bool `json:"judged,omitempty"`
	// Log is the folder with the logs of the run's processes; kept when it failed.
	Log string `json:"log,omitempty"`
}

// Fault is one harm done.
type Fault struct {
	Injection string    `json:"injection"`
	At        time.Time `json:"at"`
	// Evidence proves that it happened.
	Evidence string `json:"evidence"`
	// Before is the newest durable epoch when it happened, FenceBefore the attempt, TermBefore that of the leader.
	Before      epoch.ID    `json:"epochBefore"`
	FenceBefore fence.Token `json:"fenceBefore"`
	TermBefore  uint64      `json:"termBefore"`
	// Restored is the epoch from which the next attempt went on; absent when the attempt lived on.
	Restored *epoch.ID   `json:"epochRestored,omitempty"`
	After    epoch.ID    `json:"epochAfter"`
	Fence    fence.Token `json:"fenceAfter"`
	Term     uint64      `json:"termAfter"`
	// Detect is the seconds until the mesh acted: another attempt, leader or phase. Absent when it never had to.
	Detect *float64 `json:"detect,omitempty"`
	// Durable is the seconds until the first epoch that was triggered after the fault was durable.
	Durable *float64 `json:"durable,omitempty"`
}

// Rows is the comparison of the final rows.
type Rows struct {
	Source    int64 `json:"source"`
	Target    int64 `json:"target"`
	Missing   int64 `json:"missing"`
	Extra     int64 `json:"extra"`
	Different int64 `json:"different"`
}

// Events is the comparison of every change, as multisets of (transaction, table, key, operation, ordinal).
type Events struct {
	Transactions int64 `json:"transactions"`
	Source       int   `json:"source"`
	Target       int   `json:"target"`
	Multiset     bool  `json:"multiset"`
	Order        bool  `json:"orderPerKey"`
	Whole        bool  `json:"wholeTransactions"`
	Values       bool  `json:"values"`
}

// Ledger is the audit of one sink's commits.
type Ledger struct {
	Sink       string   `json:"sink"`
	Commits    int      `json:"commits"`
	First      epoch.ID `json:"first"`
	Last       epoch.ID `json:"last"`
	Contiguous bool     `json:"contiguous"`
}

// Reader is what looked at the target all the while.
type Reader struct {
	Target string `json:"target"`
	Looks  int    `json:"looks"`
	Clean  bool   `json:"clean"`
}
