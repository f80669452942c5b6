package report

// Recovery says how a source came to where it is. It is no lifecycle: a source that was restored copies, catches up or
// follows as before.
type Recovery string

// The states of recovery.
const (
	// Restoring: an attempt begins from an epoch and its readers do not all report yet.
	Restoring Recovery = "RESTORING"
	// Restored: they do, and no epoch of this attempt is durable yet.
	Restored Recovery = "RESTORED"
	// Steady: an epoch of this attempt is durable, or there was nothing to restore.
	Steady Recovery = "STEADY"
	// RecoveryUnknown: nothing is known of the attempt.
	RecoveryUnknown Recovery = "UNKNOWN"
)

// Health says what is seen of a source; the reason is beside it. Backpressure is no health.
type Health string

// The states of health.
const (
	Healthy Health = "HEALTHY"
	// StaleReport: a report is older than it may be, or missing.
	StaleReport Health = "STALE_REPORT"
	// NoProgress: the position has not changed for long, and nothing proves that it should have.
	NoProgress Health = "NO_PROGRESS_OBSERVED"
	// Stalled: the position has not changed although the connector sees that its source is ahead, and nothing behind the
	// reader holds it up.
	Stalled Health = "CONNECTOR_REPORTED_STALLED"
	// HealthUnknown: the source is not running.
	HealthUnknown Health = "UNKNOWN"
)

// HealthSource is whose evidence the health rests on.
type HealthSource string

// The sources of health.
const (
	Framework HealthSource = "FRAMEWORK"
	Connector HealthSource = "CONNECTOR"
)
