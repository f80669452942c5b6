package cdcpostgres

import (
	"testing"

	"weir.dev/weir/itest/harness"
)

func TestChangesInCommitOrder(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	j := newJob(t, pg, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1, 'a'), (2, NULL); UPDATE t SET v = 'b' WHERE id = 2; DELETE FROM t WHERE id = 1")
	wantRows(t, a.take(t, 4),
		"insert public.t id=1 v=a", "insert public.t id=2 v=NULL", "update_after public.t id=2 v=b", "delete public.t id=1 v=ABSENT")
}
