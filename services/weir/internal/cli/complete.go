package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionTime bounds what a shell waits for live names.
const completionTime = time.Second

// jobNames completes the first argument with the jobs of the mesh. Without a mesh there is nothing to offer.
func (s *settings) jobNames(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []cobra.Completion
	s.live(cmd, func(ctx context.Context, c session) {
		heads, err := c.Jobs(ctx)
		if err != nil {
			return
		}
		for _, h := range heads {
			if strings.HasPrefix(h.Job, prefix) {
				names = append(names, cobra.CompletionWithDesc(h.Job, string(h.Phase)))
			}
		}
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// jobVertices completes JOB/VERTEX with the sinks of the jobs: what enters them are the rows people look for.
func (s *settings) jobVertices(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []cobra.Completion
	s.live(cmd, func(ctx context.Context, c session) {
		heads, err := c.Jobs(ctx)
		if err != nil {
			return
		}
		for _, h := range heads {
			j, err := c.Spec(ctx, &h)
			if err != nil {
				continue
			}
			for _, k := range j.Sinks {
				if v := h.Job + "/" + k.Name; strings.HasPrefix(v, prefix) {
					found = append(found, cobra.CompletionWithDesc(v, "rows that enter this "+k.Type+" sink"))
				}
			}
		}
	})
	return found, cobra.ShellCompDirectiveNoFileComp
}

// live runs a read with the short time that a shell grants.
func (s *settings) live(cmd *cobra.Command, read func(ctx context.Context, c session)) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	c, err := s.open(ctx)
	if err != nil {
		return
	}
	defer c.Close()
	read(ctx, c)
}

// specFiles completes with YAML files.
func specFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeFlag offers the values of a flag.
func completeFlag(c *cobra.Command, flag string, values ...cobra.Completion) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("cli: " + err.Error()) // the flag is declared a line above
	}
}
