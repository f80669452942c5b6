package preflight

import (
	"errors"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
)

// Status is how bad a finding is.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning" // the job starts; a person should know
	Error   Status = "error"   // the job does not start, or its copy fails
	Unknown Status = "unknown" // it cannot be seen from here; the remedy says how to see it
)

// Finding is the outcome of one check.
type Finding struct {
	// Group is the part of the job spec that was looked at: sources.db, sinks.warehouse, or mesh.
	Group string `json:"group"`
	// Check is the stable name of the check, in snake case.
	Check string `json:"check"`
	// Subject is the one table, slot or transaction it is about; empty when it is about the whole group.
	Subject string `json:"subject,omitempty"`
	Status  Status `json:"status"`
	// Found is what was seen, Why what follows from it for the job.
	Found string `json:"found"`
	Why   string `json:"why,omitempty"`
	// Code is the error that the start would end with.
	Code   fault.Code `json:"code,omitempty"`
	Remedy *Remedy    `json:"remedy,omitempty"`
}

// Remedy is what mends a finding: at least one of SQL, Commands, Spec and Advice is set. With several, SQL and Spec belong
// together and Advice tells another way.
type Remedy struct {
	// SQL are statements in order, each with its semicolon, for a superuser or the owner of what they change.
	SQL []string `json:"sql,omitempty"`
	// Database is where SQL has to run; empty when any database of the server will do.
	Database string `json:"database,omitempty"`
	// Restart says that the server has to be started again behind SQL.
	Restart bool `json:"restart,omitempty"`
	// Commands are lines for a shell, in order; those of the NATS CLI for a user with the rights of an administrator.
	Commands []string `json:"commands,omitempty"`
	// Spec is a line of the job spec, as path: value.
	Spec   string `json:"spec,omitempty"`
	Advice string `json:"advice,omitempty"`
}

// Failed is the finding of a check that ended with an error of the start. Without a remedy of its own it has the one of
// the error's code.
func Failed(group, check string, err error, remedy *Remedy) Finding {
	f := fault.Of(err)
	if remedy == nil && f.Remedy != "" {
		remedy = &Remedy{Advice: f.Remedy}
	}
	found := f.What
	if f.Why != "" {
		found += ": " + f.Why
	}
	return Finding{Group: group, Check: check, Status: Error, Found: found, Code: f.Code, Remedy: remedy}
}

// Count returns how many findings have a status.
func Count(all []Finding, s Status) int {
	n := 0
	for i := range all {
		if all[i].Status == s {
			n++
		}
	}
	return n
}

// Groups returns the groups of findings in the order of their first finding.
func Groups(all []Finding) []string {
	var groups []string
	for i := range all {
		if !slices.Contains(groups, all[i].Group) {
			groups = append(groups, all[i].Group)
		}
	}
	return groups
}

var (
	errUnnamed  = errors.New("group or check has no name")
	errNothing  = errors.New("nothing is said to be found")
	errNoRemedy = errors.New("a finding that is not ok has neither statement, command nor advice")
	errBlank    = errors.New("a statement or command has a name that nobody filled in, or a statement no semicolon")
)

// Validate reports a finding that does not keep the promises of this package.
func (f *Finding) Validate() error {
	switch {
	case f.Group == "" || f.Check == "":
		return errUnnamed
	case f.Found == "":
		return errNothing
	case f.Status == OK:
		return nil
	case f.Remedy == nil || len(f.Remedy.SQL)+len(f.Remedy.Commands) == 0 && f.Remedy.Spec == "" && f.Remedy.Advice == "":
		return errNoRemedy
	}
	for _, s := range f.Remedy.SQL {
		if !strings.HasSuffix(s, ";") || strings.ContainsAny(s, "<>") {
			return errBlank
		}
	}
	if slices.ContainsFunc(f.Remedy.Commands, func(c string) bool { return c == "" || strings.Contains(c, "<") }) {
		return errBlank
	}
	return nil
}
