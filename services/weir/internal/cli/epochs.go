package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
	"weir.dev/weir/services/weir/internal/control"
)

func epochsCommand(s *settings) *cobra.Command {
	c := group("epochs", "The ledger of epochs: list, show one, verify all", "look")
	c.AddCommand(epochsListCommand(s), epochsShowCommand(s), epochsVerifyCommand(s))
	return c
}

// epochLine is one durable epoch in a list.
type epochLine struct {
	Epoch     epoch.ID   `json:"epoch"`
	Kind      epoch.Kind `json:"kind"`
	Fence     uint64     `json:"fence"`
	Committed bool       `json:"committed"`
	Rows      uint64     `json:"rows"`
	// Took is from trigger to the last ack, by the leader's clock.
	Took      time.Duration `json:"took"`
	Completed time.Time     `json:"completed"`
	Digest    string        `json:"digest"`
}

func epochsListCommand(s *settings) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:     "list NAME",
		Short:   "List the durable epochs that are kept, newest first",
		Example: "  weir epochs list shop --limit 10",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			h, err := c.Head(ctx, args[0])
			if err != nil {
				return err
			}
			links, err := c.History(ctx, h)
			if err != nil {
				return err
			}
			slices.Reverse(links)
			if limit > 0 && len(links) > limit {
				links = links[:limit]
			}
			lines := make([]epochLine, 0, len(links))
			for _, l := range links {
				lines = append(lines, lineOf(l, h.Committed))
			}
			return s.out().show("EpochList", lines, func(w io.Writer) {
				row(w, "EPOCH", "KIND", "ATTEMPT", "COMMITTED", "ROWS", "TOOK", "COMPLETED", "DIGEST")
				for _, l := range lines {
					row(w, l.Epoch, l.Kind, l.Fence, l.Committed, l.Rows, l.Took.Round(10*time.Microsecond), l.Completed.Format(time.RFC3339Nano), l.Digest[:min(12, len(l.Digest))])
				}
			})
		}),
	}
	c.Flags().IntVar(&limit, "limit", 0, "newest only (0: all that are kept)")
	return c
}

func lineOf(l epoch.Link, committed epoch.ID) epochLine {
	m := l.Manifest
	e := epochLine{
		Epoch: m.Epoch, Kind: m.Kind, Fence: uint64(m.Fence), Committed: m.Epoch <= committed,
		Took: m.Completed.Sub(m.Triggered), Completed: m.Completed, Digest: l.Ref.Digest,
	}
	for _, k := range m.Sinks {
		for _, st := range k.Staged {
			e.Rows += st.Rows
		}
	}
	return e
}

func epochsShowCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME [EPOCH]",
		Short:   "Show one epoch's manifest: positions, staged pieces, tallies; the newest when none is named",
		Example: "  weir epochs show shop\n  weir epochs show shop 41 --json",
		Args:    cobra.RangeArgs(1, 2),

		ValidArgsFunction: s.jobThen(1, epochsOf),
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			h, err := c.Head(ctx, args[0])
			if err != nil {
				return err
			}
			links, err := c.History(ctx, h)
			if err != nil {
				return err
			}
			m, err := pick(links, args)
			if err != nil {
				return err
			}
			return s.out().show("Manifest", m, func(w io.Writer) { showManifest(w, m) })
		}),
	}
}

func pick(links []epoch.Link, args []string) (*epoch.Manifest, error) {
	if len(links) == 0 {
		return nil, fault.New(fault.CLIUsage, args[0], "no epoch of this job is durable yet", "command", "weir epochs show")
	}
	if len(args) == 1 {
		return links[len(links)-1].Manifest, nil
	}
	id, err := epoch.ParseID(args[1])
	if err != nil {
		return nil, fault.Wrap(err, fault.CLIUsage, args[1], "not the number of an epoch", "command", "weir epochs show")
	}
	for _, l := range links {
		if l.Ref.Epoch == id {
			return l.Manifest, nil
		}
	}
	return nil, fault.New(fault.CLIUsage, args[1], fmt.Sprintf("not durable or no longer kept; kept are %d to %d", links[0].Ref.Epoch, links[len(links)-1].Ref.Epoch), "command", "weir epochs show")
}

func showManifest(w io.Writer, m *epoch.Manifest) {
	fmt.Fprintf(w, "epoch %d  %s  attempt %d  term %d  after epoch %d\n", m.Epoch, m.Kind, m.Fence, m.Term, m.Prev.Epoch)
	fmt.Fprintf(w, "triggered %s, complete after %s\n", m.Triggered.Format(time.RFC3339Nano), m.Completed.Sub(m.Triggered))
	for _, id := range slices.SortedFunc(maps.Keys(m.Subtasks), plan.SubtaskID.Compare) {
		if p := m.Subtasks[id].Position; !p.IsZero() {
			row(w, "position", id, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Sinks)) {
		for _, st := range m.Sinks[name].Staged {
			row(w, "staged", name, st.Subtask, fmt.Sprintf("epoch %d", st.Epoch), fmt.Sprintf("%d rows", st.Rows), fmt.Sprintf("%d objects", len(st.Objects)))
		}
	}
	for _, ch := range slices.SortedFunc(maps.Keys(m.Channels), plan.Channel.Compare) {
		t := m.Channels[ch].Delta
		row(w, "channel", ch, fmt.Sprintf("%d messages", t.Messages), fmt.Sprintf("%d rows", t.Rows), fmt.Sprintf("sum %016x", t.Hash))
	}
	for _, table := range slices.Sorted(maps.Keys(m.Tables)) {
		row(w, "table", table, fmt.Sprintf("%d in", m.Tables[table].In), fmt.Sprintf("%d out", m.Tables[table].Out))
	}
}

func epochsVerifyCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "verify NAME",
		Short:   "Check the chain of manifests, their balance, and every target's ledger",
		Long:    "Checks everything that is kept. The target's ledger is read with the sink's own URL, resolved here. Exit code 4 when something does not hold.",
		Example: "  weir epochs verify shop",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: s.jobNames,
		RunE: s.with(func(ctx context.Context, c session, args []string) error {
			a, err := c.Verify(ctx, args[0], readLedger)
			if fault.CodeOf(err) != fault.CLIVerifyFailed && err != nil {
				return err
			}
			shown := s.out().show("Audit", a, func(w io.Writer) { showAudit(w, a) })
			if err != nil {
				return err
			}
			return shown
		}),
	}
}

func showAudit(w io.Writer, a control.Audit) {
	fmt.Fprintf(w, "job %s: %d manifests checked, epochs %d to %d\n", a.Job, a.Manifests, a.First, a.Last)
	for _, name := range slices.Sorted(maps.Keys(a.Ledgers)) {
		row(w, "ledger of "+name, a.Ledgers[name])
	}
	for _, f := range a.Findings {
		fmt.Fprintln(w, "finding: "+f.String())
	}
	if len(a.Findings) == 0 {
		fmt.Fprintln(w, "the chain is whole, every epoch balances")
	}
}

// readLedger reads the ledger of a sink that keeps one in a database, with the URL as this host resolves it.
func readLedger(ctx context.Context, jobName, life string, k spec.Sink) ([]epoch.LedgerEntry, bool, string, error) {
	return ledgerReader(config.OS().Resolve)(ctx, jobName, life, k)
}

// ledgerReader reads ledgers with URLs as resolve has them.
func ledgerReader(resolve func(ref string) (string, error)) control.ReadLedger {
	return func(ctx context.Context, jobName, _ string, k spec.Sink) ([]epoch.LedgerEntry, bool, string, error) {
		return entries(ctx, jobName, k, resolve)
	}
}

func entries(ctx context.Context, jobName string, k spec.Sink, resolve func(ref string) (string, error)) ([]epoch.LedgerEntry, bool, string, error) {
	l, kept, err := sink.ReadLedger(ctx, jobName, k, resolve)
	switch {
	case fault.CodeOf(err) == fault.ConfUnresolved:
		return nil, false, "the sink's URL has no value on this host", nil
	case err != nil:
		return nil, false, "", err
	case !kept:
		return nil, false, "a " + k.Type + " sink keeps no ledger", nil
	}
	log := make([]epoch.LedgerEntry, 0, len(l.Log))
	for _, e := range l.Log {
		log = append(log, epoch.LedgerEntry{Ref: e.Ref, Prev: e.Prev, Rows: e.Rows, Dead: e.Dead})
	}
	return log, true, "", nil
}
