package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/pkg/fault"
)

func TestPoisonous(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		"23514": true, "23502": true, "23505": true, "23503": true, "23P01": true, // constraints
		"22001": true, "22003": true, "22021": true, "22P02": true, // values
		"P0001": true, "54000": true, "44000": true, // triggers, index entries, views
		"40001": false, "40P01": false, "53100": false, "57014": false, "08006": false, // the target, not the row
		"42501": false, "42P01": false, "42703": false, "25006": false, "54001": false,
	} {
		if got := poisonous(fmt.Errorf("apply: %w", &pgconn.PgError{Code: state})); got != want {
			t.Errorf("%s: %t", state, got)
		}
	}
	if !poisonous(fault.New(fault.SinkPartialMiss, "", "")) || poisonous(fault.New(fault.SinkMissingTable, "", "")) ||
		poisonous(nil) || poisonous(errors.New("broken pipe")) {
		t.Error("an error that is not PostgreSQL's is judged wrongly")
	}
}
