// Package checkup is what the doctors of the sinks of databases have in common: what they are asked, and how they say what
// they have found.
//
// Role: a doctor looks, in its database's own way and with the functions that a committer starts with; a [Report] has its
// findings.
package checkup

import (
	"fmt"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
)

// Checkup asks a doctor about one sink.
type Checkup struct {
	// Config is that of the committer; the life is that of the job, empty when the job has none yet.
	Config sink.Config
	// LivesKnown says that an empty life is known to be none; else nobody could be asked.
	LivesKnown bool
	// Tables are the rows that will come, as far as they are known.
	Tables []*rows.Schema
}

// Where is the sink's place in the spec.
func (c *Checkup) Where() string { return "sinks." + c.Config.Sink.Name }

// Report collects findings about one sink, whose place in the spec they are grouped by.
type Report struct {
	Group    string
	Findings []preflight.Finding
}

func (r *Report) add(f preflight.Finding) {
	f.Group = r.Group
	r.Findings = append(r.Findings, f)
}

// OK says that a check found nothing wrong.
func (r *Report) OK(check, format string, args ...any) {
	r.add(preflight.Finding{Check: check, Status: preflight.OK, Found: fmt.Sprintf(format, args...)})
}

// Warn says what may go wrong, and why.
func (r *Report) Warn(check, found, why string, remedy *preflight.Remedy) {
	r.add(preflight.Finding{Check: check, Status: preflight.Warning, Found: found, Why: why, Remedy: remedy})
}

// Fail says that the start would end with an error. subject is what of the sink it is about, or empty.
func (r *Report) Fail(check, subject string, err error, remedy *preflight.Remedy) {
	f := preflight.Failed(r.Group, check, err, remedy)
	f.Subject = subject
	r.add(f)
}

// Made says that the start makes a table.
func (r *Report) Made(table string) { r.table(table, "it will be made") }

// Fits says that a table that is there can be written, when the start has made these changes to it.
func (r *Report) Fits(table string, changes []string) {
	if len(changes) > 0 {
		r.table(table, "it will be changed: "+strings.Join(changes, " "))
		return
	}
	r.table(table, "it fits")
}

func (r *Report) table(name, found string) {
	r.add(preflight.Finding{Check: "table", Subject: name, Status: preflight.OK, Found: found})
}

// NotEmpty says how the rows of a table that was there first can be dealt with, when an error is about those.
func (r *Report) NotEmpty(err error) *preflight.Remedy {
	if fault.CodeOf(err) != fault.SinkNotEmpty {
		return nil
	}
	return &preflight.Remedy{
		Spec: r.Group + ".existing: truncate", Advice: "Or existing: keep, when the rows in it are those that the job would write.",
	}
}

// Owner judges whose ledger it is. ledger is what keeps the row, for people; forget would give up what it remembers.
func (r *Report) Owner(c *Checkup, row core.Row, ledger string, forget preflight.Remedy) {
	switch verdict := core.Claim(row, c.Config.Life, row.Fence); {
	case row == core.Row{}:
		r.OK("ledger", "no life of the job has written here")
	case verdict == core.Apply:
		r.OK("ledger", "it holds epoch %s of the job's life %s", row.Ref.Epoch, row.Life)
	case !c.LivesKnown:
		r.Warn("ledger", fmt.Sprintf("it holds epoch %s of life %s", row.Ref.Epoch, row.Life),
			"a new life of the job would be refused, and which life the job has cannot be known: no mesh was asked",
			&preflight.Remedy{Advice: "Ask again with --nats or NATS_URL."})
	default:
		forget.Advice = "Only when the older life is given up. The tables then count as there before, see existing:."
		err := fault.New(fault.JobLedgerForeign, r.Group, ledger+" has life "+row.Life, "job", c.Config.Job)
		r.Fail("ledger", c.Config.Job, err, &forget)
	}
}
