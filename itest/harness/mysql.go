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

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/services/weir/verify/process"
)

// MySQLConfig says how a private MySQL or MariaDB server is made.
type MySQLConfig struct {
	// NoGTID leaves MySQL's GTIDs off, as its default is. MariaDB always has its own.
	NoGTID bool
	// Durable keeps fsync on. Benchmarks need it for honest figures; tests do without, since what the kernel holds survives
	// SIGKILL.
	Durable bool
	// Settings are system variables that win over ours; an empty value leaves ours out.
	Settings map[string]string
}

// memoryFolder holds the data of servers that need no disk: these write more than a hundred megabytes before they are ready.
const memoryFolder = "/dev/shm"

// MySQL is a private MySQL or MariaDB server on a loopback port. It writes a binary log with full row images and full row
// metadata unless its settings say otherwise.
type MySQL struct {
	// Admin has every right, from any address.
	Admin Role
	// Port on 127.0.0.1; the same over all restarts.
	Port int

	dir     string
	program mysqlProgram
	proc    *Process

	mu       sync.Mutex
	settings map[string]string
}

// StartMySQL makes and starts a MySQL server that lasts as long as the test.
func StartMySQL(tb testing.TB, cfg MySQLConfig) *MySQL {
	tb.Helper()
	return startMySQL(tb, RunMySQL, cfg)
}

// StartMariaDB makes and starts a MariaDB server that lasts as long as the test.
func StartMariaDB(tb testing.TB, cfg MySQLConfig) *MySQL {
	tb.Helper()
	return startMySQL(tb, RunMariaDB, cfg)
}

func startMySQL(tb testing.TB, run func(context.Context, MySQLConfig) (*MySQL, error), cfg MySQLConfig) *MySQL {
	tb.Helper()
	m, err := run(tb.Context(), cfg)
	return lasting(tb, "the server", m, err)
}

// RunMySQL is StartMySQL for programs: the caller calls Close. ctx bounds the start only.
func RunMySQL(ctx context.Context, cfg MySQLConfig) (*MySQL, error) {
	p, err := findMySQL()
	if err != nil {
		return nil, err
	}
	settings := map[string]string{
		"mysqlx": "OFF", "innodb_redo_log_capacity": "64M", "max_connections": "300", "authentication_policy": "caching_sha2_password",
		"caching_sha2_password_auto_generate_rsa_keys": "ON", "auto_generate_certs": "OFF", "gtid_mode": "ON",
		"enforce_gtid_consistency": "ON", "binlog_row_metadata": "FULL", "performance_schema": "ON",
	}
	if cfg.NoGTID {
		settings["gtid_mode"], settings["enforce_gtid_consistency"] = "OFF", "OFF"
	}
	return runMySQL(ctx, p, cfg, settings)
}

// RunMariaDB is StartMariaDB for programs.
func RunMariaDB(ctx context.Context, cfg MySQLConfig) (*MySQL, error) {
	p, err := findMariaDB()
	if err != nil {
		return nil, err
	}
	return runMySQL(ctx, p, cfg, map[string]string{
		"binlog_format": "ROW", "binlog_row_metadata": "FULL", "gtid_strict_mode": "ON", "innodb_log_file_size": "64M", "max_connections": "300",
	})
}

func runMySQL(ctx context.Context, p mysqlProgram, cfg MySQLConfig, settings map[string]string) (*MySQL, error) {
	fresh, err := p.freshData(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(settings, map[string]string{
		"log_bin": "binlog", "server_id": "1", "binlog_row_image": "FULL", "bind_address": "127.0.0.1", "secure_file_priv": "",
		"innodb_buffer_pool_size": "128M", "skip_name_resolve": "ON", "default_time_zone": "+00:00", "innodb_use_native_aio": "OFF",
	})
	if !cfg.Durable {
		maps.Copy(settings, map[string]string{"innodb_flush_log_at_trx_commit": "2", "sync_binlog": "0", "innodb_doublewrite": "0"})
	}
	maps.Copy(settings, cfg.Settings)
	parent := ""
	if info, err := os.Stat(memoryFolder); err == nil && info.IsDir() && !cfg.Durable {
		parent = memoryFolder
	}
	dir, err := os.MkdirTemp(parent, "weir-mysql-")
	if err != nil {
		return nil, err
	}
	m := &MySQL{Admin: Role{Name: "weir_admin", Password: rand.Text()}, dir: dir, program: p, settings: settings}
	if err := m.create(ctx, fresh); err != nil {
		return nil, errors.Join(fmt.Errorf("start mysql: %w", err), m.Close())
	}
	return m, nil
}

// create copies the data of a server that never ran and starts it.
func (m *MySQL) create(ctx context.Context, fresh string) error {
	if err := errors.Join(os.CopyFS(m.dataDir(), os.DirFS(fresh)), os.Mkdir(m.tempDir(), 0o700)); err != nil {
		return err
	}
	// DDL takes no parameters; the password is of letters and digits only.
	first := fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s';\nGRANT ALL ON *.* TO %[1]s@'%%' WITH GRANT OPTION;\n", m.Admin.Name, m.Admin.Password)
	if m.program.maria {
		first += "RESET MASTER;\n"
	} else {
		first += "RESET BINARY LOGS AND GTIDS;\n"
	}
	if err := os.WriteFile(m.initFile(), []byte(first), 0o600); err != nil {
		return err
	}
	return onFreePort(ctx, func(port int) error {
		m.Port = port
		m.proc = process.New(ProcessConfig{
			Name: "mysql", Path: m.program.path, Args: m.args("--init-file=" + m.initFile()), Dir: m.dir, Ready: m.ready,
		})
		err := m.proc.Start(ctx)
		m.proc.SetArgs(m.args()...) // of later starts
		return err
	})
}

// tempDir is the server's own: MariaDB removes what another one has in the folder that they share when it starts.
func (m *MySQL) tempDir() string { return filepath.Join(m.dir, "tmp") }

func (m *MySQL) args(more ...string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	args := append(slices.Clone(m.program.args), asRoot()...)
	args = append(args, "--datadir="+m.dataDir(), "--tmpdir="+m.tempDir(), "--socket="+filepath.Join(m.dir, "s"), "--pid-file="+filepath.Join(m.dir, "pid"),
		"--port="+strconv.Itoa(m.Port))
	for _, name := range slices.Sorted(maps.Keys(m.settings)) {
		args = append(args, "--"+strings.ReplaceAll(name, "_", "-")+"="+m.settings[name])
	}
	return append(args, more...)
}

func (m *MySQL) ready(ctx context.Context) error {
	conn, err := m.Connect(ctx, "")
	if err != nil {
		return err
	}
	return conn.Close()
}

// Connect opens a connection as the administrator; without a database when that is empty.
func (m *MySQL) Connect(ctx context.Context, database string) (*client.Conn, error) {
	return client.ConnectWithContext(ctx, m.Address(), m.Admin.Name, m.Admin.Password, database, 10*time.Second)
}

// Exec runs one statement as the administrator on a connection of its own.
func (m *MySQL) Exec(ctx context.Context, database, sql string, args ...any) error {
	conn, err := m.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err = conn.Execute(sql, args...); err != nil {
		return fmt.Errorf("%s: %w", strings.Fields(sql)[0], err)
	}
	return nil
}

// Text runs a query as the administrator and returns the first column of its first row as text.
func (m *MySQL) Text(ctx context.Context, database, sql string, args ...any) (string, error) {
	conn, err := m.Connect(ctx, database)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	r, err := conn.Execute(sql, args...)
	if err != nil {
		return "", err
	}
	return r.GetString(0, 0)
}

// CreateUser makes a login from any address with these privileges on everything, for example "SELECT, REPLICATION SLAVE".
func (m *MySQL) CreateUser(ctx context.Context, name, privileges string) (Role, error) {
	role := Role{Name: name, Password: rand.Text()}
	if err := m.Exec(ctx, "", fmt.Sprintf("CREATE USER `%s`@'%%' IDENTIFIED BY '%s'", name, role.Password)); err != nil {
		return Role{}, fmt.Errorf("create user %s: %w", name, err)
	}
	return role, m.Exec(ctx, "", fmt.Sprintf("GRANT %s ON *.* TO `%s`@'%%'", privileges, name))
}

// MariaDB reports whether the server is one.
func (m *MySQL) MariaDB() bool { return m.program.maria }

// Address is host:port.
func (m *MySQL) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.Port)) }

// URL is the connection string of the administrator.
func (m *MySQL) URL(database string) string { return m.URLAs(m.Admin, database) }

// URLAs is the connection string of a login.
func (m *MySQL) URLAs(role Role, database string) string {
	u := url.URL{Scheme: "mysql", User: url.UserPassword(role.Name, role.Password), Host: m.Address(), Path: "/" + database}
	return u.String()
}

// Configure changes settings; an empty value goes back to the server's default. They hold from the next Restart on.
func (m *MySQL) Configure(settings map[string]string) {
	m.mu.Lock()
	for name, value := range settings {
		if value == "" {
			delete(m.settings, name)
		} else {
			m.settings[name] = value
		}
	}
	m.mu.Unlock()
	m.proc.SetArgs(m.args()...)
}

// Stop shuts the server down in order.
func (m *MySQL) Stop(ctx context.Context) error {
	if err := m.proc.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if _, err := m.proc.Wait(ctx); err != nil {
		return fmt.Errorf("stop mysql: %w", err)
	}
	return nil
}

// Kill ends the server at once (SIGKILL), as the loss of the machine would, and waits until it is gone.
func (m *MySQL) Kill() { m.proc.Kill() }

// Start starts the server again after Stop or Kill and waits until it accepts connections, recovery included.
func (m *MySQL) Start(ctx context.Context) error { return m.proc.Start(ctx) }

// Restart kills the server, if it runs, and starts it again.
func (m *MySQL) Restart(ctx context.Context) error { return m.proc.Restart(ctx) }

// Pause freezes the server (SIGSTOP): connections stay open and nothing answers.
func (m *MySQL) Pause() error { return m.proc.Pause() }

// Resume lets a frozen server go on.
func (m *MySQL) Resume() error { return m.proc.Resume() }

// Close kills the server and removes its folder. A nil server has neither.
func (m *MySQL) Close() error {
	if m == nil {
		return nil
	}
	if m.proc != nil {
		m.Kill()
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("close mysql: %w", err)
	}
	return nil
}

// LogTail returns at most the last n bytes of the server's log.
func (m *MySQL) LogTail(n int) string { return m.proc.LogTail(n) }

func (m *MySQL) dataDir() string  { return filepath.Join(m.dir, "data") }
func (m *MySQL) initFile() string { return filepath.Join(m.dir, "init.sql") }
