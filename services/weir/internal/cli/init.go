package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// defaultTemplate is what most people come for.
const defaultTemplate = "pg-to-pg"

// created is what `weir init` answers.
type created struct {
	Template string `json:"template"`
	Job      string `json:"job"`
	File     string `json:"file"`
}

func initCommand(s *settings) *cobra.Command {
	var name, file string
	var long strings.Builder
	long.WriteString("Write a job spec to begin with. It is valid as it is, and an editor with a YAML language server knows its keys.\n" +
		"A file that is there is never overwritten. Templates:\n")
	var completions []cobra.Completion
	for _, t := range spec.Templates() {
		fmt.Fprintf(&long, "  %-22s %s\n", t.Name, t.Summary)
		completions = append(completions, cobra.CompletionWithDesc(t.Name, t.Summary))
	}
	c := &cobra.Command{
		Use:     "init",
		Short:   "Write a job spec from a template",
		Long:    strings.TrimSpace(long.String()),
		Example: "  weir init --template pg-to-pg -o shop.yaml\n  weir init --template generator-to-blackhole -o -",
		GroupID: "jobs",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			t, err := template(name)
			if err != nil {
				return err
			}
			if file == "-" {
				_, err := io.WriteString(s.std.Out, t.Text)
				return err
			}
			j, err := spec.Parse([]byte(t.Text), t.Name)
			if err != nil {
				return err
			}
			made := created{Template: t.Name, Job: j.Name, File: file}
			if made.File == "" {
				made.File = j.Name + ".yaml"
			}
			if err := writeNew(made.File, t.Text); err != nil {
				return err
			}
			return s.out().show("Created", made, func(w io.Writer) {
				fmt.Fprintf(w, "%s: job %s, from template %s\nNext: edit it, then `weir validate %s` and `weir doctor %s`\n",
					made.File, made.Job, made.Template, made.File, made.File)
			})
		},
	}
	c.Flags().StringVar(&name, "template", defaultTemplate, "what to begin with")
	c.Flags().StringVarP(&file, "out", "o", "", "file to write; - for the terminal (default: <job>.yaml)")
	completeFlag(c, "template", completions...)
	return c
}

func template(name string) (spec.Template, error) {
	all := spec.Templates()
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	i := slices.Index(names, name)
	if i >= 0 {
		return all[i], nil
	}
	why := fmt.Sprintf("there is no template %q; there are %s", name, strings.Join(names, ", "))
	if near := config.Nearest(name, names); near != "" {
		why += "; did you mean " + near + "?"
	}
	return spec.Template{}, fault.New(fault.CLIUsage, "--template", why, "command", "weir init")
}

// writeNew writes a file that must not be there yet.
func writeNew(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return fault.Wrap(err, fault.CLIUsage, file, "the file is there and is not overwritten; give another name with -o", "command", "weir init")
	case err != nil:
		return fault.Wrap(err, fault.CLINoFile, file, "it cannot be written", "file", file)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
