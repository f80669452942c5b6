package cli

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/spec"
)

type version struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Spec     string `json:"spec"`
	Envelope int    `json:"envelope"`
	Head     int    `json:"head"`
	Manifest int    `json:"manifest"`
}

func versionNow() version {
	return version{
		Version: app.Version(), Go: runtime.Version(), Spec: spec.APIVersion,
		Envelope: envelope.Version, Head: job.HeadVersion, Manifest: epoch.ManifestVersion,
	}
}

func versionCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Version of this binary and of the formats it writes",
		Example: "  weir version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionNow()
			return s.out().show("Version", v, func(w io.Writer) {
				fmt.Fprintf(w, "weir %s (%s)\n", v.Version, v.Go)
				fmt.Fprintf(w, "formats: spec %s, envelope %d, head %d, manifest %d\n", v.Spec, v.Envelope, v.Head, v.Manifest)
			})
		},
	}
}
