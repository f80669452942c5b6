package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/shop"
)

// conclude closes the shop, waits until all of it has arrived, and writes what it finds into the result. Its error, too, is a finding.
func (t *trial) conclude(ctx context.Context, r *Result) error {
	if err := t.shut(); err != nil {
		return fmt.Errorf("the shop's own load: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, caughtUp)
	defer cancel()
	if err := t.control.CaughtUp(waiting, t.id); err != nil {
		return fmt.Errorf("wait until the target has everything: %w", err)
	}
	find := func(err error) {
		if err != nil {
			r.Findings = append(r.Findings, err.Error())
		}
	}
	find(t.judgeRows(ctx, r))
	find(t.judgeEvents(ctx, r))
	judged, err := t.dst.judged(ctx)
	r.Judged = judged
	find(err)
	if len(r.Findings) == 0 {
		took := seconds(time.Since(t.first))
		r.Reconciled = &took
	}
	find(t.judgeLedgers(ctx, r))
	for i, reader := range t.readers {
		err := reader.Stop()
		if reader.Looks() == 0 {
			err = errors.Join(err, fmt.Errorf("reader %d never saw its target", i))
		}
		find(err)
		r.Readers = append(r.Readers, Reader{Target: t.dst.sinks()[i], Looks: reader.Looks(), Clean: err == nil})
	}
	if _, err := t.control.Verify(ctx, t.id, t.cfg.Ledger(t.resolve)); err != nil {
		find(fmt.Errorf("epochs verify: %w", err))
	}
	return nil
}

// References of the job to its ends.
const (
	sourceRef = "${VERIFY_SOURCE}"
	targetRef = "${VERIFY_TARGET}"
)

// resolve gives the job's references the values that its processes have.
func (t *trial) resolve(ref string) (string, error) {
	switch ref {
	case sourceRef:
		return t.cfg.Source, nil
	case targetRef:
		if ice, ok := t.dst.(*iceTarget); ok {
			return ice.dir, nil
		}
		return t.cfg.Target, nil
	}
	return "", fmt.Errorf("%s is no reference of the run's job", ref)
}

func (t *trial) judgeRows(ctx context.Context, r *Result) error {
	want, err := t.src.content(ctx)
	if err != nil {
		return fmt.Errorf("final rows of the source: %w", err)
	}
	got, err := t.dst.content(ctx)
	if err != nil {
		return fmt.Errorf("final rows of the target: %w", err)
	}
	r.Rows = &Rows{}
	for _, table := range shop.Tables() {
		t.plainContent(want[table])
		t.plainContent(got[table])
		c := audit.Compare(want[table], got[table])
		c.TablePair = audit.TablePair{Source: table, Target: table}
		r.Rows.Source += c.SourceRows
		r.Rows.Target += c.TargetRows
		r.Rows.Missing += c.Missing
		r.Rows.Extra += c.Extra
		r.Rows.Different += c.Different
		if !c.Equal() {
			err = errors.Join(err, fmt.Errorf("final rows: %s", c))
		}
	}
	if r.Rows.Source == 0 {
		err = errors.Join(err, errors.New("final rows: the source is empty"))
	}
	return err
}

func (t *trial) plainContent(c audit.Content) {
	for _, rows := range c {
		for _, row := range rows {
			t.plain(row)
		}
	}
}

// plain makes cells of both sides comparable.
func (t *trial) plain(row audit.Cells) {
	for name, v := range row {
		if v != nil {
			text := t.src.plain(name, *v)
			row[name] = &text
		}
	}
}

func (t *trial) judgeEvents(ctx context.Context, r *Result) error {
	want, err := t.src.changes(ctx)
	if err != nil {
		return fmt.Errorf("the source's log: %w", err)
	}
	if len(want) == 0 {
		return errors.New("the source's log holds no changes")
	}
	got, err := t.dst.changes(ctx)
	if err != nil {
		return err
	}
	for _, c := range slices.Concat(want, got) {
		t.plain(c.Cells)
	}
	t.forgive(got, want)
	j := audit.Judge(got, want)
	r.Events = &Events{
		Transactions: t.applied.Load(), Source: len(want), Target: len(got),
		Multiset: j.Multiset == nil, Order: j.Order == nil, Whole: j.Whole == nil, Values: j.Values == nil,
	}
	return j.Err()
}

func (t *trial) judgeLedgers(ctx context.Context, r *Result) error {
	var errs []error
	for _, sink := range t.dst.sinks() {
		log, err := t.dst.ledger(ctx, sink)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		err = verdict.LedgerContiguous(log)
		errs = append(errs, err)
		r.Ledgers = append(r.Ledgers, Ledger{
			Sink: sink, Commits: len(log), First: log[0].Ref.Epoch, Last: log[len(log)-1].Ref.Epoch, Contiguous: err == nil,
		})
	}
	return errors.Join(errs...)
}
