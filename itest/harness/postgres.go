package harness

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// PostgresConfig says how a private PostgreSQL cluster is made.
type PostgresConfig struct {
	// Durable keeps fsync on. Benchmarks need it for honest figures; tests do
	// without, since what the kernel holds survives SIGKILL.
	Durable bool
	// Settings are lines of postgresql.conf that win over ours, for example
	// {"wal_level": "replica"} for a source that is set up wrong.
	Settings map[string]string
}

// Role is a login of a cluster. Every login over TCP needs its password
// (scram-sha-256), so a wrong one is refused.
type Role struct {
	Name     string
	Password string
}

// Postgres is a private PostgreSQL cluster on a loopback port. It has
// wal_level=logical and room for 20 slots unless its settings say otherwise.
type Postgres struct {
	// Admin is the superuser.
	Admin Role
	// Port on 127.0.0.1; the same over all restarts.
	Port int

	dir     string // private folder: data, socket, log, configuration
	bin     string // folder of the server programs
	account *account
	proc    *Process

	mu       sync.Mutex
	settings map[string]string
}

// StartPostgres makes and starts a cluster that lasts as long as the test.
func StartPostgres(tb testing.TB, cfg PostgresConfig) *Postgres {
	tb.Helper()
	p, err := RunPostgres(tb.Context(), cfg)
	return lasting(tb, "PostgreSQL", p, err)
}

// RunPostgres is StartPostgres for programs: the caller calls Close. ctx bounds
// the start only. As root the server runs under the account postgres (or nobody
// where that does not exist), because PostgreSQL refuses to run as root.
func RunPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	as, err := serverAccount()
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	dir, err := privateDir(as)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p := &Postgres{
		Admin:    Role{Name: "postgres", Password: rand.Text()},
		dir:      dir,
		bin:      bin,
		account:  as,
		settings: clusterSettings(cfg),
	}
	if err := p.create(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), p.Close())
	}
	return p, nil
}

func clusterSettings(cfg PostgresConfig) map[string]string {
	settings := map[string]string{
		"wal_level":             "logical",
		"max_replication_slots": "20",
		"max_wal_senders":       "20",
		"max_connections":       "100",
		"shared_buffers":        "128MB",
		"max_wal_size":          "4GB",
		"autovacuum_naptime":    "10s",
		"log_min_messages":      "info",
		"log_timezone":          "UTC",
		"log_line_prefix":       "%m [%p] %u@%d %a ",
	}
	if !cfg.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["shared_buffers"] = "32MB"
	}
	maps.Copy(settings, cfg.Settings)
	return settings
}

// create runs initdb and the first start.
func (p *Postgres) create(ctx context.Context) error {
	if err := p.initdb(ctx); err != nil {
		return err
	}
	return p.run(ctx)
}

// run is the first start of a cluster whose files are there.
func (p *Postgres) run(ctx context.Context) error {
	return onFreePort(ctx, func(port int) (err error) {
		p.Port = port
		if err := p.writeConfig(); err != nil {
			return err
		}
		p.proc, err = RunProcess(ctx, ProcessConfig{
			Name:  "postgres",
			Path:  filepath.Join(p.bin, "postgres"),
			Args:  []string{"-D", p.dataDir()},
			Env:   []string{"LC_ALL=C"},
			Dir:   p.dir,
			Ready: p.ready,
			As:    p.account.credential(),
		})
		return err
	})
}

func (p *Postgres) ready(ctx context.Context) error {
	conn, err := p.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// writeConfig writes the settings that differ from PostgreSQL's own.
func (p *Postgres) writeConfig() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.settings)) {
		fmt.Fprintf(&conf, "%s = '%s'\n", name, strings.ReplaceAll(p.settings[name], "'", "''"))
	}
	fmt.Fprintf(&conf, "listen_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\n", p.Port, p.dir)
	return p.account.writeFile(filepath.Join(p.dir, "weir.conf"), conf.String())
}

// Configure changes settings; an empty value goes back to PostgreSQL's default.
// They hold from the next Restart on.
func (p *Postgres) Configure(settings map[string]string) error {
	p.mu.Lock()
	for name, value := range settings {
		if value == "" {
			delete(p.settings, name)
		} else {
			p.settings[name] = value
		}
	}
	p.mu.Unlock()
	return p.writeConfig()
}

// Address is host:port.
func (p *Postgres) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)) }

// URL is the connection string of the superuser.
func (p *Postgres) URL(database string) string { return p.URLAs(p.Admin, database) }

// URLAs is the connection string of a role.
func (p *Postgres) URLAs(role Role, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(role.Name, role.Password),
		Host:     p.Address(),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop shuts the server down in order: sessions are cut, data is flushed.
func (p *Postgres) Stop(ctx context.Context) error {
	if err := p.proc.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if _, err := p.proc.Wait(ctx); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	return nil
}

// Kill ends the postmaster and all its processes at once (SIGKILL), as the loss
// of the machine would, and waits until they are gone.
func (p *Postgres) Kill() {
	// The postmaster is stopped first, so that it forks no child we do not see.
	if err := p.proc.Pause(); err != nil {
		return // it has ended
	}
	tree := children(p.proc.PID())
	p.proc.Kill()
	signalAll(tree, syscall.SIGKILL)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for slices.ContainsFunc(tree, alive) {
		<-tick.C
	}
}

// Start starts the server again after Stop or Kill and waits until it accepts
// connections, recovery included.
func (p *Postgres) Start(ctx context.Context) error { return p.proc.Start(ctx) }

// Restart kills the server, if it runs, and starts it again.
func (p *Postgres) Restart(ctx context.Context) error {
	p.Kill()
	return p.Start(ctx)
}

// Pause freezes the postmaster and all its processes (SIGSTOP): connections
// stay open and nothing answers.
func (p *Postgres) Pause() error {
	if err := p.proc.Pause(); err != nil {
		return err
	}
	signalAll(children(p.proc.PID()), syscall.SIGSTOP)
	return nil
}

// Resume lets a frozen server go on.
func (p *Postgres) Resume() error {
	signalAll(children(p.proc.PID()), syscall.SIGCONT)
	return p.proc.Resume()
}

// Close kills the server and removes its folder. A nil cluster has neither.
func (p *Postgres) Close() error {
	if p == nil {
		return nil
	}
	if p.proc != nil {
		p.Kill()
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("close postgres: %w", err)
	}
	return nil
}

// LogPath returns the file of the server's log.
func (p *Postgres) LogPath() string { return filepath.Join(p.dir, "postgres.log") }

// LogTail returns at most the last n bytes of the server's log.
func (p *Postgres) LogTail(n int) string { return p.proc.LogTail(n) }

// Bin returns the path of one of PostgreSQL's programs, such as pg_recvlogical.
func (p *Postgres) Bin(program string) string { return filepath.Join(p.bin, program) }

func (p *Postgres) dataDir() string { return filepath.Join(p.dir, "data") }
