package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Validate refuses a report that contradicts itself. What is refused is shown to nobody: a wrong number is worse than a
// missing one.
func (e *Envelope) Validate() error {
	switch {
	case e.Job == "" || e.Subtask == "":
		return errors.New("report of nobody")
	case e.Fence == 0:
		return fmt.Errorf("report of %s: no attempt", e.Subtask)
	case (e.Reader == nil) == (e.Enumerator == nil):
		return fmt.Errorf("report of %s: want one of reader and enumerator", e.Subtask)
	}
	err := error(nil)
	if e.Reader != nil {
		err = e.Reader.validate()
	} else {
		err = e.Enumerator.validate()
	}
	if err == nil && e.Restore != nil && e.Restore.Epoch == 0 {
		err = errors.New("restored from no epoch")
	}
	if err != nil {
		return fmt.Errorf("report of %s: %w", e.Subtask, err)
	}
	return nil
}

func (l Lifecycle) known() bool {
	return slices.Contains([]Lifecycle{Snapshot, CatchUp, Incremental, Unknown}, l)
}

func (r *Reader) validate() error {
	head, hasHead := r.Head.Get()
	_, moved := r.LastChange.Get()
	_, at := r.Consumed.Get()
	switch {
	case r.Connector == "":
		return errors.New("no connector")
	case !r.Lifecycle.known():
		return fmt.Errorf("lifecycle %q: unknown", r.Lifecycle)
	case r.Copies && r.Lifecycle != Snapshot && r.Lifecycle != Unknown:
		return fmt.Errorf("a reader without the log is %s", r.Lifecycle)
	case moved && !at:
		return errors.New("a position that is not there has changed")
	case hasHead && (head.Position.IsZero() || head.At.IsZero()):
		return errors.New("a source head without position or time")
	}
	for name, v := range map[string]Value[time.Time]{"lastChange": r.LastChange, "lastEvent": r.LastEvent} {
		if t, ok := v.Get(); ok && t.IsZero() {
			return fmt.Errorf("%s is a zero time", name)
		}
	}
	if n, ok := r.RetainedBytes.Get(); ok && n < 0 {
		return fmt.Errorf("%d bytes of log are retained", n)
	}
	if err := r.Retention.validate(); err != nil {
		return err
	}
	if err := r.beats(); err != nil {
		return err
	}
	if err := waits(r.Waits); err != nil {
		return err
	}
	return tables(r.Tables)
}

func waits(all []Wait) error {
	for _, w := range all {
		if w.Since.IsZero() || w.What == "" {
			return fmt.Errorf("a wait for %q since %s", w.What, w.Since)
		}
	}
	return nil
}

func (e *Enumerator) validate() error {
	assigned, ok1 := exactOf(e.Assigned)
	completed, ok2 := exactOf(e.Completed)
	running, ok3 := exactOf(e.Running)
	switch {
	case e.Connector == "":
		return errors.New("no connector")
	case !slices.Contains([]Assignment{NotApplicable, Discovering, Assigning, AllAssigned}, e.Assignment):
		return fmt.Errorf("assignment %q: unknown", e.Assignment)
	case ok1 && ok2 && ok3 && assigned != completed+running:
		return fmt.Errorf("%d splits assigned, %d completed and %d running", assigned, completed, running)
	case len(e.Active) > MaxActive:
		return fmt.Errorf("%d active splits, at most %d", len(e.Active), MaxActive)
	case e.ActiveTruncated && len(e.Active) < MaxActive:
		return errors.New("active splits are cut off and there is room")
	case ok3 && uint64(len(e.Active)) > running:
		return fmt.Errorf("%d active splits, %d running", len(e.Active), running)
	case len(e.Read) > MaxRead:
		return fmt.Errorf("%d splits that are read, at most %d", len(e.Read), MaxRead)
	case ok2 && uint64(len(e.Read)) > completed:
		return fmt.Errorf("%d splits that are read, %d completed", len(e.Read), completed)
	}
	if err := named("active", e.Active); err != nil {
		return err
	}
	if err := named("read", e.Read); err != nil {
		return err
	}
	if err := splits(e); err != nil {
		return err
	}
	if err := waits(e.Waits); err != nil {
		return err
	}
	return tables(e.Tables)
}

// named refuses splits that cannot be told apart, and watermarks that one split alone cannot have.
func named(what string, all []Split) error {
	for i, s := range all {
		if s.ID == "" || s.Table == "" || i > 0 && all[i-1].ID >= s.ID {
			return fmt.Errorf("%s split %q: want ids in order, each with its table", what, s.ID)
		}
		if _, high := s.High.Get(); high && s.Low.Accuracy() == Unavailable {
			return fmt.Errorf("%s split %s: an upper watermark without a lower one", what, s.ID)
		}
	}
	return nil
}

// splits refuses tables whose splits are more than all that there are.
func splits(e *Enumerator) error {
	var sum Splits
	for _, t := range e.Tables {
		if p := t.Splits; p != nil {
			sum.Completed, sum.Running, sum.Prepared = sum.Completed+p.Completed, sum.Running+p.Running, sum.Prepared+p.Prepared
		}
	}
	for _, c := range []struct {
		what string
		sum  uint64
		all  Value[uint64]
	}{{"completed", sum.Completed, e.Completed}, {"running", sum.Running, e.Running}, {"prepared", sum.Prepared, e.PreparedUnsent}} {
		if n, ok := exactOf(c.all); ok && c.sum > n {
			return fmt.Errorf("%d splits of tables are %s, %d of the source", c.sum, c.what, n)
		}
	}
	return nil
}

func tables(all []Table) error {
	for _, t := range all {
		if t.Name == "" || !t.Lifecycle.known() {
			return fmt.Errorf("table %q is %q", t.Name, t.Lifecycle)
		}
	}
	return nil
}

// State is what is said of a source, in three words that are independent but for what [State.Validate] refuses.
type State struct {
	Lifecycle Lifecycle
	Recovery  Recovery
	// RestoredEpoch is the epoch this attempt began from; zero for none.
	RestoredEpoch uint64
	Health        Health
	Evidence      HealthSource
	// Reason is the evidence in words.
	Reason string
}

// Validate refuses combinations that no run can be in.
func (s State) Validate() error {
	var problems []string
	refuse := func(when bool, what string) {
		if when {
			problems = append(problems, what)
		}
	}
	refuse(!s.Lifecycle.known(), fmt.Sprintf("lifecycle %q", s.Lifecycle))
	refuse(!slices.Contains([]Recovery{Restoring, Restored, Steady, RecoveryUnknown}, s.Recovery), fmt.Sprintf("recovery %q", s.Recovery))
	refuse(!slices.Contains([]Health{Healthy, StaleReport, NoProgress, Stalled, HealthUnknown}, s.Health), fmt.Sprintf("health %q", s.Health))
	refuse(s.Evidence != Framework && s.Evidence != Connector, fmt.Sprintf("evidence of %q", s.Evidence))
	refuse(s.RestoredEpoch == 0 && (s.Recovery == Restoring || s.Recovery == Restored), string(s.Recovery)+" from no epoch")
	refuse(s.RestoredEpoch != 0 && s.Recovery == RecoveryUnknown, "an unknown recovery from a known epoch")
	refuse(s.Recovery == Restoring && (s.Health == NoProgress || s.Health == Stalled), string(s.Health)+" before there is a position")
	refuse((s.Health == Stalled) != (s.Evidence == Connector), fmt.Sprintf("%s by the evidence of %s", s.Health, s.Evidence))
	refuse(s.Reason == "" && s.Health != Healthy && s.Health != HealthUnknown, string(s.Health)+" without a reason")
	refuse(s.Health == Stalled && s.Lifecycle == Unknown, "stalled in no lifecycle")
	if len(problems) > 0 {
		return errors.New("state of a source: " + strings.Join(problems, "; "))
	}
	return nil
}
