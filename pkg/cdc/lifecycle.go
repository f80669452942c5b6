package cdc

// Mode says whether the rows that exist before the log begins are copied.
type Mode uint8

// The modes.
const (
	// Initial copies, then follows the log.
	Initial Mode = iota + 1
	// Only copies, follows the log until the copy is that of one moment, and ends. Without the log it would not be one:
	// a row that moves from an unread chunk into one already read would be missing.
	Only
	// Never follows the log from its start.
	Never
)

// Lifecycle is where a source, or one of its tables, is.
//
//	SNAPSHOT ──every chunk finished, an epoch with them committed──► CATCH_UP ──position past every mark──► INCREMENTAL
//	    ▲                                                               │                                       │
//	    └───────────── log paused: tables are read again ───────────────┴───────────────────────────────────────┘
type Lifecycle uint8

// The lifecycles.
const (
	Snapshot Lifecycle = iota + 1
	CatchUp
	Incremental
)

// String is the word used in reports.
func (l Lifecycle) String() string {
	switch l {
	case Snapshot:
		return "SNAPSHOT"
	case CatchUp:
		return "CATCH_UP"
	case Incremental:
		return "INCREMENTAL"
	}
	return "UNKNOWN"
}

// stage is what the enumerator is doing, in finer steps than the lifecycle.
//
//	settle ──► read ──► cover ──► follow ──► pause ──► clear ──► settle
type stage uint8

const (
	// stageSettle waits until every transaction that the log may already be past is visible to readers of chunks.
	stageSettle stage = iota + 1
	// stageRead hands out chunks.
	stageRead
	// stageCover has every chunk finished and waits for a committed epoch that has them all.
	stageCover
	// stageFollow has given the log to a reader.
	stageFollow
	// stagePause has asked that reader to stop.
	stagePause
	// stageClear has the log paused and waits for a committed epoch that has everything emitted until then.
	stageClear
)

// copying reports whether tables are being read, or about to be.
func (s stage) copying() bool { return s == stageSettle || s == stageRead || s == stageCover }
