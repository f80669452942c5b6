package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"weir.dev/weir/services/weir/verify/process"
)

// ErrNoPostgres names the remedy, since whoever reads it wants to run a test.
var ErrNoPostgres = errors.New("PostgreSQL's server programs are missing: " +
	"apt-get install -y --no-install-recommends postgresql, or set WEIR_PG_BIN to the folder that holds initdb and postgres")

// postgresBin returns the folder of initdb and postgres: WEIR_PG_BIN, else the
// newest version under Debian's /usr/lib/postgresql, else wherever PATH leads.
func postgresBin() (string, error) {
	if dir := os.Getenv("WEIR_PG_BIN"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			return "", fmt.Errorf("WEIR_PG_BIN: %w", err)
		}
		return dir, nil
	}
	installed, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	if len(installed) > 0 {
		return filepath.Dir(slices.MaxFunc(installed, func(a, b string) int { return debianVersion(a) - debianVersion(b) })), nil
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return "", ErrNoPostgres
	}
	// The other programs lie beside the file, not beside a link to it.
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		return "", err
	}
	return filepath.Dir(initdb), nil
}

// debianVersion is NN in /usr/lib/postgresql/NN/bin/initdb.
func debianVersion(initdb string) int {
	version, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return version
}

// account is the user a server runs as; nil is the starter's own.
type account struct{ uid, gid int }

// serverAccount returns the user for PostgreSQL, which refuses to run as root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, fmt.Errorf("user id of %s: %w", name, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, fmt.Errorf("group id of %s: %w", name, err)
		}
		return &account{uid: uid, gid: gid}, nil
	}
	return nil, errors.New("running as root, and neither the user postgres nor nobody exists")
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
}

// give makes the account the owner of a file or folder.
func (a *account) give(name string) error {
	if a == nil {
		return nil
	}
	return os.Chown(name, a.uid, a.gid)
}

func (a *account) writeFile(name, text string) error {
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return err
	}
	return a.give(name)
}

// privateDir makes a folder that only the account may look into. It lies under
// the temporary folder, or under /tmp where the account cannot get there or
// where the path of the Unix socket would be longer than the kernel's 107 bytes.
func privateDir(a *account) (string, error) {
	parent := os.TempDir()
	if len(parent) > 60 || (a != nil && !worldTraversable(parent)) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "weir-postgres-")
	if err != nil {
		return "", err
	}
	return dir, a.give(dir)
}

func worldTraversable(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// initdb makes the cluster and lets postgresql.conf end with our own settings.
func (p *Postgres) initdb(ctx context.Context) error {
	passwords := filepath.Join(p.dir, "password")
	if err := p.account.writeFile(passwords, p.Admin.Password+"\n"); err != nil {
		return err
	}
	defer func() { _ = os.Remove(passwords) }() // Close removes the folder
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "initdb"),
		"--pgdata", p.dataDir(), "--username", p.Admin.Name, "--pwfile", passwords,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	cmd.Dir = p.dir
	cmd.Env = append(process.Environment(), "LC_ALL=C.UTF-8")
	cmd.SysProcAttr = process.Attributes(p.account.credential())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	conf, err := os.OpenFile(filepath.Join(p.dataDir(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := conf.WriteString("include = '../weir.conf'\n"); err != nil {
		conf.Close()
		return err
	}
	return conf.Close()
}
