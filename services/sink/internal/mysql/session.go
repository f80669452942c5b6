package mysql

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/transact"
)

const (
	// lockTimeout bounds the wait for a lock of a row, the ledger's above all.
	lockTimeout = 5 * time.Second
	// patience is how long a statement may take: far above what a piece of a few MiB does. A server that is silent for longer
	// is frozen, or the connection leads nowhere.
	patience       = 5 * time.Minute
	connectTimeout = 10 * time.Second
)

// settings every session runs under. Values are strict, and MySQL's own invalid dates are values too, as they are at a MySQL
// source. A lock holds what a statement has read at most until the transaction ends, and no gap beside it. Rows were checked
// where they were born: foreign keys would check them again, piece by piece.
var settings = []string{
	"SET NAMES utf8mb4 COLLATE utf8mb4_bin",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
	"SET SESSION sql_mode = 'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,ALLOW_INVALID_DATES," +
		"NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
	"SET SESSION time_zone = '+00:00', autocommit = 1, foreign_key_checks = 0, lock_wait_timeout = 10, " +
		"innodb_lock_wait_timeout = " + strconv.Itoa(int(lockTimeout.Seconds())),
}

// server is where a sink writes.
type server struct {
	address, host  string
	user, password string
	tls, strict    bool // strict: the server has to prove its name
}

// newServer reads mysql://user:password@host:port/?tls=false|true|skip-verify. Its error does not quote the string, which
// has the password.
func newServer(raw string, at transact.Place) (server, error) {
	bad := func(why string) (server, error) {
		return server{}, fault.New(fault.SinkBadURL, at.Sink+".url", why, "where", at.Sink)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "mysql" || u.Hostname() == "" {
		return bad("not mysql://user:password@host:3306/")
	}
	s := server{host: u.Hostname(), address: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3306")), user: u.User.Username()}
	s.password, _ = u.User.Password()
	switch u.Query().Get("tls") {
	case "", "false":
	case "true":
		s.tls, s.strict = true, true
	case "skip-verify":
		s.tls = true
	default:
		return bad("tls is true, false or skip-verify")
	}
	return s, nil
}

// session is one connection to the target with the temporary tables made on it. It is owned by one goroutine.
type session struct {
	conn *client.Conn
	// broken says that a statement did not come to an answer: the server may still run it.
	broken bool
	maria  bool
	// folds says that the server takes names of tables in lower case.
	folds bool
	// packet is the longest statement that the server takes.
	packet int
	// staging are the temporary tables that exist, by name.
	staging map[string]bool
}

// open connects under settings.
func (s server) open(ctx context.Context, at transact.Place) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(connectTimeout)) // of the handshake
		}
		return conn, err
	}
	conn, err := client.ConnectWithDialer(ctx, "tcp", s.address, s.user, s.password, "", dial, func(c *client.Conn) error {
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES)
		if s.tls {
			c.UseSSL(!s.strict)
		}
		// An UPDATE counts the rows that it found, whether they were different or not.
		return c.SetCapability(mysql.CLIENT_FOUND_ROWS)
	})
	if err != nil {
		return nil, translate(ctx, err, at)
	}
	out := &session{conn: conn, staging: make(map[string]bool), maria: strings.Contains(conn.GetServerVersion(), "MariaDB")}
	if err := out.prepare(ctx); err != nil {
		out.close()
		return nil, translate(ctx, err, at)
	}
	return out, nil
}

func (s *session) prepare(ctx context.Context) error {
	for _, sql := range settings {
		if _, err := s.exec(ctx, sql); err != nil {
			return err
		}
	}
	if s.maria {
		if _, err := s.exec(ctx, fmt.Sprintf("SET SESSION max_statement_time = %d", int(patience.Seconds()))); err != nil {
			return err
		}
	}
	found, err := s.query(ctx, "SELECT @@max_allowed_packet, @@lower_case_table_names")
	if err != nil {
		return err
	}
	s.packet, err = strconv.Atoi(found[0].text(0))
	s.folds = found[0].text(1) == "1"
	return err
}

// tooOld reports a server that lacks what statements here use.
func (s *session) tooOld() bool {
	var v [3]int
	text := strings.TrimPrefix(s.conn.GetServerVersion(), "5.5.5-") // how MariaDB begins for old clients
	_, _ = fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2])
	older := func(major, minor, patch int) bool {
		return v[0] < major || (v[0] == major && (v[1] < minor || (v[1] == minor && v[2] < patch)))
	}
	if s.maria {
		return older(10, 6, 0)
	}
	return older(8, 0, 21)
}

// collation tells all texts apart: letters of either case, and blanks at the end.
func (s *session) collation() string {
	if s.maria {
		return "utf8mb4_nopad_bin"
	}
	return "utf8mb4_0900_bin"
}

// tableOptions end the statement that makes a table.
func (s *session) tableOptions() string {
	return " ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE " + s.collation()
}

// lockName is that of all attempts of one committer, of at most 64 characters.
func lockName(database, life, vertex string) string {
	sum := sha256.Sum256([]byte(database + "\x00" + life + "\x00" + vertex))
	return "weir:" + hex.EncodeToString(sum[:16])
}

// own takes the name's lock; whoever has it is an older session of this committer, whose work is undone or done when it is
// gone. Nothing else is ended: numbers of sessions are used again, locks end with theirs.
func (s *session) own(ctx context.Context, name string, at transact.Place) error {
	found, err := s.query(ctx, "SELECT IS_USED_LOCK("+text(name)+")")
	if err != nil {
		return err
	}
	if holder := found[0]; !holder.null(0) {
		if _, err := s.exec(ctx, "KILL "+holder.text(0)); err != nil && !hasNumber(err, noSuchThread) {
			return err
		}
	}
	found, err = s.query(ctx, fmt.Sprintf("SELECT GET_LOCK(%s, %d)", text(name), int(connectTimeout.Seconds())))
	if err != nil {
		return err
	}
	if found[0].text(0) != "1" {
		return fault.New(fault.SinkClaimRaced, at.Sink, "the session of an older attempt does not end")
	}
	return nil
}

func (s *session) close() {
	_ = s.conn.Close() // nothing is left to save on it
	s.broken = true
}

// run executes a statement. When ctx ends, so does the connection.
func (s *session) run(ctx context.Context, sql string) (*mysql.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.conn.SetDeadline(time.Now().Add(patience + connectTimeout)); err != nil {
		s.broken = true
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.Conn.Conn.Close() }) // the socket: the layers above are not for two goroutines
	r, err := s.conn.Execute(sql)
	if !stop() {
		s.broken = true
	}
	if err != nil {
		if _, answered := errors.AsType[*mysql.MyError](err); !answered {
			s.broken = true
		}
	}
	return r, err
}

// exec runs a statement and returns how many rows it found or changed.
func (s *session) exec(ctx context.Context, sql string) (int64, error) {
	r, err := s.run(ctx, sql)
	if err != nil {
		return 0, err
	}
	n := int64(r.AffectedRows)
	r.Close()
	return n, nil
}

// record is one row of an answer; a nil cell is null.
type record []*string

func (r record) text(i int) string {
	if r[i] == nil {
		return ""
	}
	return *r[i]
}

func (r record) null(i int) bool { return r[i] == nil }

// number reads a cell that holds an integer.
func (r record) number(i int) int64 {
	n, _ := strconv.ParseInt(r.text(i), 10, 64) // of a column of integers
	return n
}

// query runs a statement and returns its rows as text.
func (s *session) query(ctx context.Context, sql string) ([]record, error) {
	r, err := s.run(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Resultset == nil {
		return nil, nil
	}
	all := make([]record, r.RowNumber())
	for i := range all {
		all[i] = make(record, r.ColumnNumber())
		for j := range all[i] {
			if null, err := r.IsNull(i, j); err != nil || null {
				continue
			}
			v, err := r.GetString(i, j)
			if err != nil {
				return nil, err
			}
			v = strings.Clone(v)
			all[i][j] = &v
		}
	}
	return all, nil
}

// text writes a literal of text, for a session without backslash escapes.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// quote writes a name.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
