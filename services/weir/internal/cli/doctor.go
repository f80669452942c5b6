package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	cdcmysql "weir.dev/weir/services/cdc-mysql"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
	"weir.dev/weir/services/sink"
)

// oldTransaction is from which age on an open transaction is worth a word.
const oldTransaction = time.Minute

// checkup is what `weir doctor` answers.
type checkup struct {
	Job      string              `json:"job"`
	Errors   int                 `json:"errors"`
	Warnings int                 `json:"warnings"`
	Unknown  int                 `json:"unknown,omitempty"`
	Findings []preflight.Finding `json:"findings"`
}

// grant is a script of `weir doctor --fix`.
type grant struct {
	Group string `json:"group"`
	// SQL is empty when the server was not reached; then Why says why.
	SQL string `json:"sql,omitempty"`
	Why string `json:"why,omitempty"`
}

func doctorCommand(s *settings) *cobra.Command {
	var fix bool
	var monitor string
	c := &cobra.Command{
		Use:   "doctor [FILE]",
		Short: "Check NATS, and sources and sinks of a job before it starts; each finding with what mends it",
		Long: "Look at the servers and tables of a job spec as the start of the job would, and change nothing. A mesh, when one " +
			"is found, is asked which slots and publications are still needed, and its NATS server is looked at too. Without a " +
			"file only NATS is looked at.\n" +
			"With --fix print SQL that gives each role the least it needs; nothing is run.\n" +
			"Exit code 0 when there are no errors, 2 for a bad spec, 3 when something keeps the job from starting.",
		Example: "  weir doctor shop.yaml\n  weir doctor shop.yaml --fix > grants.sql\n  weir doctor --nats-monitor http://127.0.0.1:8222",
		GroupID: "jobs",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: specFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := doctor{resolve: config.OS().Resolve}
			if err := s.diagnose(cmd.Context(), &d, args, fix, monitor); err != nil {
				return err
			}
			if fix {
				return s.showGrants(&d)
			}
			return s.showCheckup(&d)
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "print the SQL of all rights that the roles need; run nothing")
	c.Flags().StringVar(&monitor, "nats-monitor", "", "monitoring address of the NATS server (http_port): it tells what no client can see")
	return c
}

// diagnose looks at what was asked for.
func (s *settings) diagnose(ctx context.Context, d *doctor, args []string, fix bool, monitor string) error {
	if len(args) == 0 {
		if fix {
			return fault.New(fault.CLIUsage, "--fix", "rights are those of the roles of a job: name its file", "command", "weir doctor")
		}
		return d.nats(ctx, s, monitor)
	}
	var err error
	if d.job, err = readSpec(args[0]); err != nil {
		return err
	}
	d.mesh(ctx, s)
	if err := d.nats(ctx, s, monitor); err != nil {
		return err
	}
	return d.examine(ctx)
}

// doctor collects what is found about NATS and a job.
type doctor struct {
	job     *spec.Job // nil when only NATS is looked at
	resolve func(string) (string, error)

	lives    []cdcpostgres.Life
	known    bool // lives are those of a mesh
	findings []preflight.Finding
	grants   []grant
	schemas  map[string][]*rows.Schema // by source
}

func (d *doctor) examine(ctx context.Context) error {
	d.schemas = make(map[string][]*rows.Schema)
	for _, src := range d.job.Sources {
		if err := d.source(ctx, src); err != nil {
			return err
		}
	}
	for _, k := range d.job.Sinks {
		if err := d.sink(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// mesh asks which lives still need what they made. That there is none to ask is no fault: the job may be the first.
func (d *doctor) mesh(ctx context.Context, s *settings) {
	const group, check = "mesh", "jobs"
	heads, err := s.heads(ctx)
	switch {
	case fault.CodeOf(err) == fault.CLINotRunning:
		d.findings = append(d.findings, preflight.Finding{
			Group: group, Check: check, Status: preflight.OK, Found: "none was asked: no --nats, no NATS_URL, and no running `weir up`",
		})
		return
	case err != nil:
		d.findings = append(d.findings, preflight.Failed(group, check, err, nil))
		return
	}
	d.known = true
	for _, h := range heads {
		if h.Phase != job.Finished && h.Phase != job.Cancelled {
			d.lives = append(d.lives, cdcpostgres.Life{Job: h.Job, Life: h.Life})
		}
	}
	d.findings = append(d.findings, preflight.Finding{
		Group: group, Check: check, Status: preflight.OK, Found: fmt.Sprintf("%d jobs, %d of them not over", len(heads), len(d.lives)),
	})
}

func (s *settings) heads(ctx context.Context) ([]job.Head, error) {
	c, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Jobs(ctx)
}

func (d *doctor) source(ctx context.Context, src spec.Source) error {
	group := "sources." + src.Name
	var modes []spec.Mode
	for _, k := range d.job.Sinks {
		if slices.Contains(k.From, src.Name) {
			modes = append(modes, k.Mode)
		}
	}
	switch src.Config.(type) {
	case *spec.PostgresSource:
		found, err := cdcpostgres.Doctor(ctx, cdcpostgres.Checkup{
			Job: d.job.Name, Source: src, Resolve: d.resolve, Modes: modes, Lives: d.lives, LivesKnown: d.known, Old: oldTransaction,
		})
		if err != nil {
			return err
		}
		d.schemas[src.Name] = found.Schemas
		d.add(group, found.Findings, found.Grants)
	case *spec.MySQLSource:
		found, err := cdcmysql.Doctor(ctx, cdcmysql.Checkup{Job: d.job.Name, Source: src, Resolve: d.resolve, Modes: modes})
		if err != nil {
			return err
		}
		d.schemas[src.Name] = found.Schemas
		d.add(group, found.Findings, found.Grants)
	default:
		d.findings = append(d.findings, preflight.Finding{
			Group: group, Check: "type", Status: preflight.OK, Found: fmt.Sprintf("sources of type %s have no checks", src.Type),
		})
	}
	return nil
}

func (d *doctor) sink(ctx context.Context, k spec.Sink) error {
	c := sink.Checkup{Job: d.job.Name, LivesKnown: d.known, Sink: k, Resolve: d.resolve}
	for _, l := range d.lives {
		if l.Job == d.job.Name {
			c.Life = l.Life
		}
	}
	for _, from := range k.From {
		c.Tables = append(c.Tables, d.schemas[from]...)
	}
	found, err := sink.Doctor(ctx, c)
	if err != nil {
		return err
	}
	group := "sinks." + k.Name
	if _, ok := k.Config.(spec.TableSink); !ok {
		d.findings = append(d.findings, found.Findings...)
		return nil
	}
	d.add(group, found.Findings, found.Grants)
	return nil
}

// add takes what was found about one server.
func (d *doctor) add(group string, findings []preflight.Finding, grants string) {
	d.findings = append(d.findings, findings...)
	g := grant{Group: group, SQL: grants}
	if grants == "" {
		g.Why = "nothing is known of it"
		for i := range findings {
			if findings[i].Status == preflight.Error {
				g.Why = findings[i].Found
				break
			}
		}
	}
	d.grants = append(d.grants, g)
}

// failed is the end of a doctor that has shown errors.
var failed = exited(fault.ExitEnvironment)

func (s *settings) showCheckup(d *doctor) error {
	c := checkup{
		Findings: d.findings,
		Errors:   preflight.Count(d.findings, preflight.Error), Warnings: preflight.Count(d.findings, preflight.Warning),
		Unknown: preflight.Count(d.findings, preflight.Unknown),
	}
	if d.job != nil {
		c.Job = d.job.Name
	}
	err := s.out().show("Checkup", c, func(w io.Writer) { showFindings(w, c) })
	if c.Errors > 0 {
		return errors.Join(err, failed)
	}
	return err
}

func showFindings(w io.Writer, c checkup) {
	for _, group := range preflight.Groups(c.Findings) {
		fmt.Fprintln(w, group)
		for i := range c.Findings {
			if f := &c.Findings[i]; f.Group == group {
				showFinding(w, f)
			}
		}
		fmt.Fprintln(w)
	}
	what := "NATS"
	if c.Job != "" {
		what = "job " + c.Job
	}
	fmt.Fprintf(w, "%s: %s, %s", what, number(c.Errors, "error"), number(c.Warnings, "warning"))
	if c.Unknown > 0 {
		fmt.Fprintf(w, ", %d unknown", c.Unknown)
	}
	fmt.Fprintln(w)
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func showFinding(w io.Writer, f *preflight.Finding) {
	head := f.Check
	if f.Subject != "" {
		head += " of " + f.Subject
	}
	text := f.Found
	if f.Code != "" {
		text += " [" + string(f.Code) + "]"
	}
	fmt.Fprintf(w, "  %-8s %s: %s\n", f.Status, head, text)
	if f.Status == preflight.OK {
		return
	}
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "           %-5s %s\n", label, text)
		}
	}
	line("why", f.Why)
	r := f.Remedy
	if r == nil {
		return
	}
	where := "sql"
	if len(r.SQL) > 0 && r.Database != "" {
		line("in", "database "+r.Database)
	}
	for _, statement := range r.SQL {
		line(where, statement)
		where = ""
	}
	for i, c := range r.Commands {
		line([]string{"run", ""}[min(i, 1)], c)
	}
	if r.Restart {
		line("then", "restart the server")
	}
	line("spec", r.Spec)
	line("do", r.Advice)
}

func (s *settings) showGrants(d *doctor) error {
	missing := slices.ContainsFunc(d.grants, func(g grant) bool { return g.SQL == "" })
	err := s.out().show("Grants", d.grants, func(w io.Writer) {
		for i, g := range d.grants {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if g.SQL == "" {
				fmt.Fprintf(w, "-- %s: %s\n", g.Group, strings.ReplaceAll(g.Why, "\n", " "))
				continue
			}
			fmt.Fprint(w, g.SQL)
		}
		if len(d.grants) == 0 {
			fmt.Fprintln(w, "-- Nothing in this job has a role.")
		}
	})
	if missing {
		return errors.Join(err, failed)
	}
	return err
}
