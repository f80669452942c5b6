package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/weir/internal/control"
	"weir.dev/weir/services/weir/internal/datadir"
	"weir.dev/weir/services/weir/internal/embed"
	"weir.dev/weir/services/weir/internal/mesh"
)

// startTime is how long the services of this process have to take their work up before a job's submission gives up.
const startTime = 30 * time.Second

func upCommand(s *settings) *cobra.Command {
	var p process
	var listen string
	c := &cobra.Command{
		Use:   "up [JOB.yaml ...]",
		Short: "Run all services and a NATS server in this process, and submit the given jobs",
		Long: "Everything in one process. The first signal stops it gracefully, a second one at once; jobs stay RUNNING and go on " +
			"at the next start. The data directory belongs to one process at a time.",
		Example: "  weir up shop.yaml\n  weir up --data-dir /var/lib/weir --nats-listen 127.0.0.1:4222",
		GroupID: "run",

		ValidArgsFunction: specFiles,
		RunE: func(_ *cobra.Command, files []string) (err error) {
			jobs, err := readSpecs(files)
			if err != nil {
				return err
			}
			dir, err := datadir.Open(s.dataDir)
			if err != nil {
				return err
			}
			defer func() {
				if closeErr := dir.Close(); err == nil {
					err = closeErr
				}
			}()
			u := up{dir: dir, listen: listen, jobs: jobs, w: s.std.Out}
			outside, stop := p.outside(s, "")
			defer stop()
			return ended(app.Execute(outside, "weir", struct{}{}, u.run), nil)
		},
	}
	p.flags(c, "127.0.0.1:8422")
	c.Flags().StringVar(&listen, "nats-listen", "127.0.0.1:4222", "address of the embedded NATS server")
	return c
}

// given is a job named on the command line.
type given struct {
	file string
	job  *spec.Job
}

// readSpecs reads every file before anything is started.
func readSpecs(files []string) ([]given, error) {
	jobs := make([]given, 0, len(files))
	for _, f := range files {
		j, err := readSpec(f)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, given{file: f, job: j})
	}
	return jobs, nil
}

// up is one run of everything.
type up struct {
	dir    *datadir.Dir
	listen string
	jobs   []given
	w      io.Writer
}

func (u up) run(ctx context.Context, env app.Env, _ struct{}) (err error) {
	server, err := embed.Start(ctx, embed.Config{StoreDir: u.dir.NATS(), Listen: u.listen, Logger: env.Telemetry.Logger})
	if err != nil {
		return err
	}
	// Last of all: the services hand their leases back through it.
	defer server.Stop()
	env.Bus.InProcess = server
	if err := u.dir.Announce(datadir.Up{PID: os.Getpid(), NATS: server.URL(), HTTP: env.HTTP}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(u.w, "weir %s  NATS %s  HTTP http://%s\n", app.Version(), server.URL(), env.HTTP)

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	submitted := make(chan error, 1)
	go func() {
		err := u.submit(ctx, env)
		if err != nil {
			stop(err)
		}
		submitted <- err
	}()
	err = mesh.Run(ctx, env, mesh.Names()...)
	if submitErr := <-submitted; submitErr != nil {
		return submitErr
	}
	return err
}

// submit asks for the jobs of the command line as soon as the mesh can be asked.
func (u up) submit(ctx context.Context, env app.Env) error {
	if len(u.jobs) == 0 {
		return nil
	}
	options := env.Bus
	options.Name = "weir-up"
	conn, err := bus.Connect(ctx, options)
	if err != nil {
		return err
	}
	defer conn.Close()
	starting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	c, err := control.Open(starting, conn)
	if err != nil {
		return untilStopped(ctx, err)
	}
	for _, g := range u.jobs {
		if err := u.one(starting, env.Telemetry.Logger, c, g); err != nil {
			return untilStopped(ctx, err)
		}
	}
	return nil
}

func (u up) one(ctx context.Context, log *slog.Logger, c *control.Client, g given) error {
	plain := embed.Loopback(u.listen)
	if where := g.job.LiteralPasswords(); len(where) > 0 && plain {
		log.WarnContext(ctx, "the spec holds a password in plain text; use ${file:...} or ${VAR}", "path", where[0], telemetry.KeyJob, g.job.Name)
	}
	sub, err := c.Submit(ctx, g.job, g.file, plain)
	if err != nil {
		return err
	}
	showSubmission(u.w, sub)
	_, _ = fmt.Fprintf(u.w, "look: weir status %s   weir tail %s/%s   weir bus %s\n", sub.Job, sub.Job, g.job.Sinks[0].Name, sub.Job)
	if sub.Phase == "FAILED" {
		log.WarnContext(ctx, "the job has failed and stays so; after the repair resume it with weir job resume", telemetry.KeyJob, sub.Job)
	}
	return nil
}

// untilStopped hides errors of work that was cut short by a stop.
func untilStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && fault.CodeOf(err) != fault.CLISpecDiffers {
		return nil
	}
	return err
}
