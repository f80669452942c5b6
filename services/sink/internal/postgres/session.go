package postgres

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/sink/internal/transact"
)

const (
	// lockTimeout bounds the wait for a lock, the ledger row's above all: a zombie that holds it is then ended.
	lockTimeout = 2 * time.Second
	// statementTimeout bounds one COPY or one apply of a piece; far above what a piece of a few MiB takes.
	statementTimeout = 5 * time.Minute
	connectTimeout   = 10 * time.Second
	// nameLimit is what PostgreSQL keeps of an application_name; it cuts the rest off, and the rest is the fence.
	nameLimit = 63
)

// settings every session runs under, besides those of pgcodec: values without a binary form travel as text.
// idle_in_transaction frees the ledger row of a committer whose machine vanished without a word.
var settings = map[string]string{
	"lock_timeout":                        strconv.FormatInt(lockTimeout.Milliseconds(), 10),
	"statement_timeout":                   strconv.FormatInt(statementTimeout.Milliseconds(), 10),
	"idle_in_transaction_session_timeout": "60000",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
	"client_min_messages":                 "warning",
	"temp_buffers":                        "4096", // 32 MiB: a piece is staged without touching the disk
	"work_mem":                            "65536",
	// A staging table has no statistics, and the one good plan is known: its rows in the order of the key, each looked up
	// in the target's index. Half the log and a third of the page visits of INSERT .. ON CONFLICT, and no chance of a
	// plan that reads the whole target for every epoch.
	"enable_hashjoin":   "off",
	"enable_mergejoin":  "off",
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"enable_material":   "off",
	"jit":               "off",
}

// sessionPrefix is the application_name of all attempts of one committer, up to the fence. A name that would be cut off
// keeps the start of the vertex and a hash of it.
func sessionPrefix(id source.Identity) string {
	const fenceDigits = 20
	vertex := string(id.Subtask.Vertex)
	if room := nameLimit - fenceDigits - len("weir:::") - len(id.Life); len(vertex) > room {
		h := fnv.New32a()
		h.Write([]byte(vertex))
		vertex = fmt.Sprintf("%.*s~%08x", max(room-9, 0), vertex, h.Sum32())
	}
	return "weir:" + id.Life + ":" + vertex + ":"
}

// session is one connection to the target with the temporary tables made on it. It is owned by one goroutine.
type session struct {
	*pgx.Conn
	// staging are the temporary tables that exist, by name.
	staging map[string]bool
}

// connect opens a session that is named for the attempt. It ends sessions of older attempts of the same committer, and the
// ones in lost: sessions of this process whose connection broke and whose server process may not have noticed.
func connect(ctx context.Context, url string, id source.Identity, lost []uint32, at transact.Place) (*session, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, badURL(at)
	}
	cfg.ConnectTimeout, cfg.DialFunc = connectTimeout, dialPatiently
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // every statement is planned for the rows it meets
	maps.Copy(cfg.RuntimeParams, pgcodec.Settings())
	maps.Copy(cfg.RuntimeParams, settings)
	cfg.RuntimeParams["application_name"] = sessionPrefix(id) + id.Fence.String()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, translate(ctx, err, at)
	}
	s := &session{Conn: conn, staging: make(map[string]bool)}
	if err := s.endZombies(ctx, id, lost); err != nil {
		s.close(ctx)
		return nil, translate(ctx, err, at)
	}
	// Rows were checked where they were born: triggers and foreign keys of the target would check them again, piece by
	// piece. Only some roles may say so; without it the target's constraints hold as they are.
	if _, err := conn.Exec(ctx, "SET session_replication_role = replica"); err != nil && !hasState(err, insufficientRight) {
		s.close(ctx)
		return nil, translate(ctx, err, at)
	}
	return s, nil
}

func (s *session) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = s.Close(ctx) // nothing is left to save on it
}

// endZombies terminates the backends of the same committer with a lower fence, and of this attempt those in lost, and
// nothing else. Whatever they were committing is named by a durable manifest and is committed again.
func (s *session) endZombies(ctx context.Context, id source.Identity, lost []uint32) error {
	prefix := sessionPrefix(id)
	rows, err := s.Query(ctx,
		`SELECT pid, application_name FROM pg_catalog.pg_stat_activity
		 WHERE starts_with(application_name, $1) AND pid <> pg_backend_pid()
		   AND datname = current_database() AND usename = current_user`, prefix)
	if err != nil {
		return err
	}
	type backend struct {
		PID  int32
		Name string
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[backend])
	if err != nil {
		return err
	}
	var ended []int32
	for _, b := range found {
		theirs, err := fence.ParseToken(strings.TrimPrefix(b.Name, prefix))
		if err != nil {
			continue // somebody else's name that begins like ours
		}
		if theirs < id.Fence || (theirs == id.Fence && slices.Contains(lost, uint32(b.PID))) {
			ended = append(ended, b.PID)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	// The second argument waits until they are gone, so that their locks are.
	_, err = s.Exec(ctx, `SELECT pg_terminate_backend(pid, 2000) FROM unnest($1::int4[]) AS pid`, ended)
	return err
}

// badURL does not wrap the cause: pgx quotes the string it could not read, password included.
func badURL(at transact.Place) error {
	return fault.New(fault.SinkBadURL, at.Sink+".url", "not a PostgreSQL connection string", "where", at.Sink)
}
