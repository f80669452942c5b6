package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"weir.dev/weir/services/weir/verify/process"
)

// ErrNoMySQL and ErrNoMariaDB name the remedy, since whoever reads them wants to run a test.
var (
	ErrNoMySQL   = errors.New("MySQL's server program is missing: run scripts/setup-mysql.sh, or set WEIR_MYSQL_ROOT to a folder with usr/sbin/mysqld")
	ErrNoMariaDB = errors.New("MariaDB's server program is missing: run scripts/setup-mysql.sh")
)

// mysqlProgram is a server's program and the arguments that every run of it needs.
type mysqlProgram struct {
	path string
	args []string
	// share is the folder of the server's own SQL and messages.
	share string
	maria bool
}

// findMySQL finds MySQL in a root file system beside the machine's own, as Debian's releases have only MariaDB. The root's
// own loader starts it, so that neither a chroot nor the machine's libraries are needed.
func findMySQL() (mysqlProgram, error) {
	root := os.Getenv("WEIR_MYSQL_ROOT")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return mysqlProgram{}, err
		}
		root = filepath.Join(cache, "weir", "servers", "mysql-root")
	}
	if _, err := os.Stat(filepath.Join(root, "usr/sbin/mysqld")); err != nil {
		return mysqlProgram{}, ErrNoMySQL
	}
	loaders, err := filepath.Glob(filepath.Join(root, "usr/lib/*/ld-linux-*.so.*"))
	if err != nil || len(loaders) == 0 {
		return mysqlProgram{}, fmt.Errorf("%w: no loader in %s", ErrNoMySQL, root)
	}
	share := filepath.Join(root, "usr/share/mysql")
	return mysqlProgram{
		path:  loaders[0],
		share: share,
		args: []string{
			"--library-path", filepath.Dir(loaders[0]), filepath.Join(root, "usr/sbin/mysqld"),
			"--no-defaults", "--basedir=" + filepath.Join(root, "usr"), "--lc-messages-dir=" + share,
			"--character-sets-dir=" + filepath.Join(share, "charsets"), "--plugin-dir=" + filepath.Join(root, "usr/lib/mysql/plugin"),
		},
	}, nil
}

func findMariaDB() (mysqlProgram, error) {
	for _, path := range []string{"/usr/sbin/mariadbd", "/usr/libexec/mariadbd"} {
		if _, err := os.Stat(path); err == nil {
			return mysqlProgram{path: path, args: []string{"--no-defaults"}, share: "/usr/share/mysql", maria: true}, nil
		}
	}
	return mysqlProgram{}, ErrNoMariaDB
}

// command is a run of the program to its end.
func (p mysqlProgram) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, append(append([]string{}, p.args...), args...)...)
	cmd.Env = process.Environment()
	cmd.SysProcAttr = process.Attributes(nil)
	return cmd
}

// version is the server's own word for it, as part of a file name.
func (p mysqlProgram) version(ctx context.Context) (string, error) {
	out, err := p.command(ctx, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", p.path, err)
	}
	_, after, _ := strings.Cut(string(out), "Ver ")
	version, _, ok := strings.Cut(after, " ")
	if !ok || strings.ContainsAny(version, "/\\") {
		return "", fmt.Errorf("version of %s: %q", p.path, out)
	}
	return version, nil
}

// asRoot is what a server wants to hear before it runs as root.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// freshData returns a folder with the data of a server that has never run, made once per version.
func (p mysqlProgram) freshData(ctx context.Context) (string, error) {
	version, err := p.version(ctx)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, "weir", "servers")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	dir := filepath.Join(parent, "data-"+version)
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	if err := p.initialize(ctx, partial); err != nil {
		return "", err
	}
	return dir, os.Rename(partial, dir)
}

func (p mysqlProgram) initialize(ctx context.Context, dir string) error {
	args := append(asRoot(), "--datadir="+dir, "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0")
	var cmd *exec.Cmd
	if p.maria {
		if err := os.Mkdir(dir, 0o750); err != nil {
			return err
		}
		cmd = p.command(ctx, append(args, "--bootstrap", "--innodb-log-file-size=8M")...)
		sql := bytes.NewBufferString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n")
		for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql"} {
			text, err := os.ReadFile(filepath.Join(p.share, name))
			if err != nil {
				return err
			}
			sql.Write(text)
		}
		cmd.Stdin = sql
	} else {
		cmd = p.command(ctx, append(args, "--initialize-insecure", "--innodb-redo-log-capacity=8M", "--disable-log-bin")...)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initialize data: %w\n%s", err, out[max(0, len(out)-4<<10):])
	}
	// A server makes its own identity and certificates when it finds none.
	for _, name := range []string{"auto.cnf", "ib_logfile101"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
