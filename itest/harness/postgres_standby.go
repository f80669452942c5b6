package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"

	"weir.dev/weir/services/weir/verify/process"
)

// StartStandby makes and starts a physical standby of the cluster that lasts as long as the test, see RunStandby.
func (p *Postgres) StartStandby(tb testing.TB, name string) *Postgres {
	tb.Helper()
	s, err := p.RunStandby(tb.Context(), name)
	return lasting(tb, "the standby", s, err)
}

// RunStandby makes a physical standby and waits until it answers queries and streams from the cluster, where it is known
// as name, the one that synchronous_standby_names speaks of. The cluster is shut down for the copy of its files and
// started again, so that it is whole without a backup program, which not every installation has: do it before anything
// depends on the server. The caller calls Close.
func (p *Postgres) RunStandby(ctx context.Context, name string) (*Postgres, error) {
	fail := func(s *Postgres, err error) (*Postgres, error) {
		return nil, errors.Join(fmt.Errorf("start standby %s: %w", name, err), s.Close())
	}
	dir, err := privateDir(p.account)
	if err != nil {
		return fail(nil, err)
	}
	s := &Postgres{Admin: p.Admin, dir: dir, bin: p.bin, account: p.account, settings: p.standbySettings(name)}
	if err := p.copyTo(ctx, s); err != nil {
		return fail(s, err)
	}
	if err := s.account.writeFile(filepath.Join(s.dataDir(), "standby.signal"), ""); err != nil {
		return fail(s, err)
	}
	if err := s.run(ctx); err != nil {
		return fail(s, err)
	}
	err = process.Await(ctx, nil, func(ctx context.Context) error {
		at, err := Value[string](ctx, p, "postgres", "SELECT state FROM pg_stat_replication WHERE application_name = $1", name)
		if err == nil && at != "streaming" {
			err = fmt.Errorf("it is in state %s", at)
		}
		return err
	})
	if err != nil {
		return fail(s, err)
	}
	return s, nil
}

// standbySettings are the cluster's own, since a standby must have room for what the cluster has; it waits for nobody.
func (p *Postgres) standbySettings(name string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	settings := maps.Clone(p.settings)
	delete(settings, "synchronous_standby_names")
	settings["hot_standby"] = "on"
	settings["primary_conninfo"] = fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s application_name=%s",
		p.Port, p.Admin.Name, p.Admin.Password, name)
	return settings
}

// copyTo copies the files of the cluster while it is down.
func (p *Postgres) copyTo(ctx context.Context, s *Postgres) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "cp", "-pR", p.dataDir(), s.dataDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("copy the cluster: %w\n%s", err, out)
	}
	return errors.Join(err, p.Start(ctx))
}
