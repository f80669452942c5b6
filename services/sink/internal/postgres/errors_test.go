package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/transact"
)

// What a person is told to do has no blanks in it.
func TestRemedyNamesWhatToDo(t *testing.T) {
	t.Parallel()
	at := transact.Place{Sink: "sinks.copy", Job: "shop", Role: "weir"}
	for _, c := range []struct {
		pg   pgconn.PgError
		want string
	}{
		{pgconn.PgError{Code: insufficientRight, Message: "permission denied for database lake"}, `GRANT CREATE ON DATABASE "lake" TO weir;`},
		{pgconn.PgError{Code: insufficientRight, Message: "permission denied for schema in"}, `GRANT USAGE, CREATE ON SCHEMA "in" TO weir;`},
		{pgconn.PgError{Code: insufficientRight, Message: "must be owner of something"}, "GRANT the right that is missing TO weir;"},
		{
			pgconn.PgError{Code: "23514", SchemaName: "public", TableName: "t", ConstraintName: "small"},
			"Drop or relax the constraint small on public.t, then `weir job resume shop`",
		},
	} {
		got := fault.Of(translateSQL(&c.pg, &c.pg, at)).Remedy
		if !strings.HasPrefix(got, c.want) || strings.ContainsAny(got, "<>") {
			t.Errorf("%s %s: remedy %q, want %q", c.pg.Code, c.pg.Message, got, c.want)
		}
	}
}
