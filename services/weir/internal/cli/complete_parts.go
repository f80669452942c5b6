package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completedEpochs bounds the epochs that a shell is offered: the newest.
const completedEpochs = 20

// part is a thing of a job that an argument behind its name may be.
type part struct{ name, says string }

// jobThen completes the first argument with jobs, and those behind it with parts of that job that are not named yet.
// most bounds how many parts a command takes; zero is no bound.
func (s *settings) jobThen(most int, parts func(ctx context.Context, c session, name string) ([]part, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return s.jobNames(cmd, args, prefix)
		}
		var found []cobra.Completion
		if most != 0 && len(args) > most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s.live(cmd, func(ctx context.Context, c session) {
			all, err := parts(ctx, c, args[0])
			if err != nil {
				return
			}
			for _, p := range all {
				if strings.HasPrefix(p.name, prefix) && !slices.Contains(args[1:], p.name) {
					found = append(found, cobra.CompletionWithDesc(p.name, p.says))
				}
			}
		})
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// epochsOf are the durable epochs that are kept, newest first.
func epochsOf(ctx context.Context, c session, name string) ([]part, error) {
	h, err := c.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	links, err := c.History(ctx, h)
	if err != nil {
		return nil, err
	}
	slices.Reverse(links)
	links = links[:min(len(links), completedEpochs)]
	all := make([]part, 0, len(links))
	for _, l := range links {
		e := lineOf(l, h.Committed)
		all = append(all, part{e.Epoch.String(), fmt.Sprintf("%s, %d rows, %s", e.Kind, e.Rows, e.Completed.Format(time.TimeOnly))})
	}
	return all, nil
}

// tablesOf are the tables that the sources report.
func tablesOf(ctx context.Context, c session, name string) ([]part, error) {
	st, err := c.Status(ctx, name)
	if err != nil {
		return nil, err
	}
	var all []part
	for _, src := range st.Sources {
		for _, t := range src.Tables {
			if p := (part{t.Name, string(t.Lifecycle)}); !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// lettersOf are the dead letters that are there. Their ids hold keys' places, no values.
func lettersOf(ctx context.Context, c session, name string) ([]part, error) {
	letters, err := c.Letters(ctx, name)
	if err != nil {
		return nil, err
	}
	all := make([]part, 0, len(letters))
	for _, l := range letters {
		all = append(all, part{l.ID, l.Code})
	}
	return all, nil
}

// completeRest keeps the shell from offering files where a command takes none, and lets it look for files and folders
// where flags want them.
func completeRest(root *cobra.Command) {
	if err := root.MarkPersistentFlagDirname("data-dir"); err != nil {
		panic("cli: " + err.Error()) // the flag is declared above
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 {
			c.ValidArgsFunction = cobra.NoFileCompletions
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
