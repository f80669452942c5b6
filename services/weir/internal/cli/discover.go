package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
	cdcmysql "weir.dev/weir/services/cdc-mysql"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
)

// discovery is what one source has.
type discovery struct {
	Source string   `json:"source"`
	Tables []listed `json:"tables"`
}

// listed is a table of any kind of source.
type listed struct {
	Schema string   `json:"schema"`
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Key    []string `json:"key,omitempty"`
	// Identity is PostgreSQL's replica identity; empty elsewhere.
	Identity string `json:"identity,omitempty"`
	Rows     *int64 `json:"estimatedRows,omitempty"`
	Bytes    int64  `json:"bytes"`
	Captured bool   `json:"captured"`
	Why      string `json:"why,omitempty"`
}

func discoverCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "discover FILE|URL",
		Short: "List the tables of a job's sources: keys, sizes, and which are captured and why not",
		Long: "List what the databases of a job's sources have, or what is at a postgres:// or mysql:// URL. Rows are the server's estimates. " +
			"Only the catalog is read.",
		Example: "  weir discover shop.yaml\n  weir discover '${SHOP_URL}'",
		GroupID: "jobs",
		Args:    cobra.ExactArgs(1),

		ValidArgsFunction: specFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			sources, err := sourcesOf(args[0])
			if err != nil {
				return err
			}
			all, err := discover(cmd.Context(), sources)
			if err != nil {
				return err
			}
			return s.out().show("Discovery", all, func(w io.Writer) { showDiscovery(w, all) })
		},
	}
}

// sourcesOf reads the sources of a spec, or takes a URL, or a reference to one, as a source without patterns.
func sourcesOf(arg string) ([]spec.Source, error) {
	if isURL := strings.Contains(arg, "://") || strings.HasPrefix(arg, "${"); !isURL {
		j, err := readSpec(arg)
		if err != nil {
			return nil, err
		}
		return j.Sources, nil
	}
	url, err := config.OS().Resolve(arg)
	if err == nil && strings.HasPrefix(url, "mysql://") {
		return []spec.Source{{Name: "url", Type: "mysql", Config: &spec.MySQLSource{URL: config.NewSecret(arg)}}}, nil
	}
	return []spec.Source{{Name: "url", Type: "postgres", Config: &spec.PostgresSource{URL: config.NewSecret(arg)}}}, nil
}

func discover(ctx context.Context, sources []spec.Source) ([]discovery, error) {
	all := []discovery{}
	for _, src := range sources {
		tables := []listed{}
		switch src.Config.(type) {
		case *spec.PostgresSource:
			found, err := cdcpostgres.Discover(ctx, src, config.OS().Resolve)
			if err != nil {
				return nil, err
			}
			for _, t := range found {
				tables = append(tables, listed(t))
			}
		case *spec.MySQLSource:
			found, err := cdcmysql.Discover(ctx, src, config.OS().Resolve)
			if err != nil {
				return nil, err
			}
			for _, t := range found {
				tables = append(tables, listed{
					Schema: t.Schema, Name: t.Name, Kind: t.Kind, Key: t.Key, Rows: t.Rows, Bytes: t.Bytes, Captured: t.Captured, Why: t.Why,
				})
			}
		default:
			continue
		}
		all = append(all, discovery{Source: src.Name, Tables: tables})
	}
	if len(all) == 0 {
		return nil, fault.New(fault.CLIUsage, "FILE", "no source of this job has tables to list", "command", "weir discover")
	}
	return all, nil
}

func showDiscovery(w io.Writer, all []discovery) {
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "sources.%s: %d tables\n", d.Source, len(d.Tables))
		row(w, "TABLE", "KIND", "KEY", "IDENTITY", "ROWS", "SIZE", "CAPTURED")
		for _, t := range d.Tables {
			estimate, captured := "unknown", "yes"
			if t.Rows != nil {
				estimate = fmt.Sprintf("about %d", *t.Rows)
			}
			if !t.Captured {
				captured = "no: " + t.Why
			}
			row(w, t.Schema+"."+t.Name, t.Kind, dash(strings.Join(t.Key, ", ")), dash(t.Identity), estimate, config.Bytes(t.Bytes), captured)
		}
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
