package server

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
)

const connectTimeout = 10 * time.Second

// patient has the server wait while nobody reads what it sends, and lets statements take the time that they take: a sink that
// stands still holds up the source, a table may be large. A server that is gone is found out by its silence, see line.
const patient = "SET SESSION net_write_timeout = 86400 /*!50708 , SESSION max_execution_time = 0 */ /*M!100101 , SESSION max_statement_time = 0 */"

// Target is the server of one source.
type Target struct {
	where, job     string
	network        string
	address        string
	user, password string
	tls            bool
	strict         bool // whether the server has to prove its name
	host           string
	waits          waits
}

// NewTarget parses a connection URL: mysql://user:password@host:port/?tls=false|true|skip-verify. where is the path of the source
// in the job spec and job its name, for errors.
func NewTarget(raw, where, job string) (*Target, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "mysql" || u.Hostname() == "" {
		// The parser's own text may quote the URL.
		return nil, fault.New(fault.MYCannotConnect, where, "the URL is not mysql://user@host:port/", "where", where)
	}
	t := &Target{where: where, job: job, network: "tcp", host: u.Hostname(), user: u.User.Username()}
	t.password, _ = u.User.Password()
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	t.address = net.JoinHostPort(u.Hostname(), port)
	switch u.Query().Get("tls") {
	case "", "false":
	case "true":
		t.tls, t.strict = true, true
	case "skip-verify":
		t.tls = true
	default:
		return nil, fault.New(fault.MYCannotConnect, where, "tls in the URL is true, false or skip-verify", "where", where)
	}
	return t, nil
}

// Where is the path of the source in the job spec.
func (t *Target) Where() string { return t.where }

// Address is host:port.
func (t *Target) Address() string { return t.address }

// Job is the name of the job that the source is of.
func (t *Target) Job() string { return t.job }

// User is who connects.
func (t *Target) User() string { return t.user }

// connect opens a connection, as long as ctx lives. The line below it still has the limit of the opening.
func (t *Target) connect(ctx context.Context) (*client.Conn, *line, error) {
	var l *line
	stop := func() bool { return true }
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: connectTimeout, KeepAlive: 15 * time.Second}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l = newLine(ctx, t, conn)
		stop = context.AfterFunc(ctx, func() { _ = l.Close() })
		return l, nil
	}
	conn, err := client.ConnectWithDialer(ctx, t.network, t.address, t.user, t.password, "", dial, func(c *client.Conn) error {
		// Statements go out, and results come in, in their plain forms.
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES)
		c.UnsetCapability(mysql.CLIENT_DEPRECATE_EOF)
		if t.tls {
			c.UseSSL(!t.strict)
		}
		return nil
	})
	switch ended := !stop(); {
	case ended:
		err = context.Cause(ctx)
	case err != nil && l != nil:
		err = t.connectFault(l.fault(err))
	case err != nil:
		err = t.connectFault(err)
	default:
		return conn, l, nil
	}
	if l != nil {
		_ = l.Close()
	}
	return nil, nil, err
}

// Session is a connection for statements. It belongs to one goroutine.
type Session struct {
	target *Target
	conn   *client.Conn
	line   *line
	buf    []byte
	cells  [][]byte
}

// Open opens a session under mycodec's settings.
func (t *Target) Open(ctx context.Context) (*Session, error) {
	conn, l, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	l.opened(conn.GetConnectionID())
	s := &Session{target: t, conn: conn, line: l}
	settings := mycodec.Settings()
	sets := []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", patient}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		sets = append(sets, "SET SESSION "+name+" = "+settings[name])
	}
	for _, sql := range sets {
		if err := s.Exec(ctx, sql); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close may be called at any time, also of a session that is none.
func (s *Session) Close() {
	if s != nil {
		_ = s.line.Close()
	}
}

// Exec runs a statement and drops what it returns.
func (s *Session) Exec(ctx context.Context, sql string) error {
	return s.Query(ctx, sql, func([][]byte) error { return nil })
}

// Query runs a statement and gives each row of its result to each; a nil cell is NULL. Cells are valid until each returns. A
// session of which each has failed is of no further use.
func (s *Session) Query(ctx context.Context, sql string, each func(cells [][]byte) error) error {
	stop := context.AfterFunc(ctx, func() { _ = s.line.Close() })
	defer stop()
	err := s.query(sql, each)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.line.fault(err)
}

func (s *Session) query(sql string, each func([][]byte) error) error {
	s.conn.ResetSequence()
	packet := make([]byte, 5, 5+len(sql))
	packet[4] = mysql.COM_QUERY
	if err := s.conn.WritePacket(append(packet, sql...)); err != nil {
		return err
	}
	head, err := s.conn.ReadPacket()
	if err != nil {
		return err
	}
	switch head[0] {
	case mysql.OK_HEADER:
		return nil
	case mysql.ERR_HEADER:
		return s.conn.HandleErrorPacket(head)
	case mysql.LocalInFile_HEADER:
		return fmt.Errorf("the server asks for a file: %w", fault.Bug)
	}
	columns, _, _ := mysql.LengthEncodedInt(head)
	for range columns + 1 { // their descriptions, and an end
		if s.buf, err = s.conn.ReadPacketReuseMem(s.buf[:0]); err != nil {
			return err
		}
	}
	if n := int(columns); cap(s.cells) < n {
		s.cells = make([][]byte, n)
	}
	s.cells = s.cells[:columns]
	for {
		if s.buf, err = s.conn.ReadPacketReuseMem(s.buf[:0]); err != nil {
			return err
		}
		switch {
		case s.buf[0] == mysql.ERR_HEADER:
			return s.conn.HandleErrorPacket(s.buf)
		case s.buf[0] == mysql.EOF_HEADER && len(s.buf) <= 5:
			return nil
		}
		if !split(s.buf, s.cells) {
			return fmt.Errorf("a row that is not as long as its cells: %w", fault.Bug)
		}
		if err := each(s.cells); err != nil {
			return err
		}
	}
}

// split finds the cells of a row: each behind its length, 0xfb for NULL.
func split(row []byte, cells [][]byte) bool {
	for i := range cells {
		if len(row) == 0 {
			return false
		}
		n, null, used := mysql.LengthEncodedInt(row)
		row = row[used:]
		if null {
			cells[i] = nil
			continue
		}
		if n > uint64(len(row)) {
			return false
		}
		cells[i], row = row[:n:n], row[n:]
	}
	return len(row) == 0
}

// One runs a query and returns the texts of its first row; nil when there is none.
func (s *Session) One(ctx context.Context, sql string) ([]string, error) {
	var row []string
	err := s.Query(ctx, sql, func(cells [][]byte) error {
		if row == nil {
			for _, c := range cells {
				row = append(row, string(c))
			}
		}
		return nil
	})
	return row, err
}

// Pairs runs a query of two columns and returns them as a map; names are in lower case.
func (s *Session) Pairs(ctx context.Context, sql string) (map[string]string, error) {
	m := make(map[string]string)
	return m, s.Query(ctx, sql, func(cells [][]byte) error {
		m[strings.ToLower(string(cells[0]))] = string(cells[1])
		return nil
	})
}
