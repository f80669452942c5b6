package pgrepl

import (
	"context"
	"io"
	"maps"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

const (
	connectTimeout = 10 * time.Second
	// senderTimeout is after how long without a status message the server ends a replication connection, so that a
	// stopped reader does not hold its slot for the default minute.
	senderTimeout = "5s"
)

// Target is the server and database of one source, and who is asking.
type Target struct {
	where   string
	session core.Session
	config  *pgx.ConnConfig
}

// NewTarget parses a connection URL. where is the path of the source in the job spec, for errors.
func NewTarget(url, where string, session core.Session) (*Target, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		// The parser's own text may quote the URL.
		return nil, fault.New(fault.PGCannotConnect, where, "the URL is not a PostgreSQL connection string", "where", where)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{KeepAlive: 15 * time.Second}
	config.DialFunc = dialer.DialContext
	maps.Copy(config.RuntimeParams, pgcodec.Settings())
	config.RuntimeParams["application_name"] = session.String()
	config.RuntimeParams["statement_timeout"] = "0"
	// A policy that would hide rows from us is an error instead.
	config.RuntimeParams["row_security"] = "off"
	return &Target{where: where, session: session, config: config}, nil
}

// Where is the path of the source in the job spec.
func (t *Target) Where() string { return t.where }

// Job is the job of who is asking, for remedies.
func (t *Target) Job() string { return t.session.Job }

// User is the role that connects.
func (t *Target) User() string { return t.config.User }

// Database is the database that is read.
func (t *Target) Database() string { return t.config.Database }

// SQL opens a session for queries.
func (t *Target) SQL(ctx context.Context) (*pgx.Conn, error) {
	config := t.config.Copy()
	config.RuntimeParams["lock_timeout"] = "10s"
	var in *inflow // of the last address tried, which is the one that answered
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		in = newInflow(r)
		return pgproto3.NewFrontend(in, w)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, t.connectFault(err)
	}
	conn.PgConn().CustomData()[inflowName] = in
	return conn, nil
}

// replication opens a walsender session and takes the raw connection out of pgx, which reads message by message.
func (t *Target) replication(ctx context.Context) (*pgconn.HijackedConn, io.Reader, error) {
	config := t.config.Config.Copy()
	config.RuntimeParams["replication"] = "database"
	config.RuntimeParams["wal_sender_timeout"] = senderTimeout
	config.RuntimeParams["client_min_messages"] = "warning" // a role may have less, and one warning counts: see unpublished
	var reader io.Reader
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		reader = r // of the last address tried, which is the one that answered
		return pgproto3.NewFrontend(r, w)
	}
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, nil, t.connectFault(err)
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, nil, t.Fault(err)
	}
	return hijacked, reader, nil
}
