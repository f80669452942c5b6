package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// readSpec reads and checks one job spec; the error holds every problem with its line.
func readSpec(file string) (*spec.Job, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Wrap(err, fault.CLINoFile, file, err.Error(), "file", file)
	}
	return spec.Parse(b, file)
}

type validated struct {
	Job         string   `json:"job"`
	Digest      string   `json:"digest"`
	Fingerprint string   `json:"planFingerprint"`
	Subtasks    []string `json:"subtasks"`
}

func validateCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "validate FILE",
		Short:   "Check a job spec without touching anything; every problem at once, with line and column",
		Long:    "Check a job spec offline. Variables need not be set. Exit code 2 when there is a problem.",
		Example: "  weir validate shop.yaml",
		GroupID: "jobs",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: specFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			j, err := readSpec(args[0])
			if err != nil {
				return err
			}
			model, err := plan.FromSpec(j)
			if err != nil {
				return err
			}
			p := plan.NewPartitioned(model)
			v := validated{Job: j.Name, Digest: j.Digest(), Fingerprint: p.Fingerprint()}
			for _, t := range p.Subtasks() {
				v.Subtasks = append(v.Subtasks, t.String())
			}
			return s.out().show("Validation", v, func(w io.Writer) {
				fmt.Fprintf(w, "%s is valid: job %s, %d subtasks\n", args[0], v.Job, len(v.Subtasks))
			})
		},
	}
}
