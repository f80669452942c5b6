package mytypes

import (
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
)

const stopSpec = `apiVersion: weir/v1
job: %[1]s
sources:
  db:
    type: mysql
    url: ${SOURCE_URL}
    tables: [p.%[1]s]
sinks:
  hole: {from: [db], type: blackhole}
`

// A session may leave columns out of the log, whatever the server's own settings are. The job stops at the change, and says
// what to do; it does not take what is not there for null, nor half a document for a whole one (O32).
func TestPartialRowsStopTheJob(t *testing.T) {
	t.Parallel()
	server := startServer(t, false)
	conn := connect(t, server)
	execute(t, conn, "CREATE DATABASE p")
	m := mesh.Up(t, []string{"SOURCE_URL=" + server.URL("")})
	const before = `'{"a": 0, "b": 0, "c": "%s"}'`
	cases := []struct{ job, setting, change string }{
		{"minimal", "binlog_row_image = MINIMAL", "n = n + 1"},
		{"noblob", "binlog_row_image = NOBLOB", "n = n + 1"},
		{"document", "binlog_row_value_options = PARTIAL_JSON", "j = JSON_SET(j, '$.a', 1, '$.b', 2), n = n + 1"},
	}
	for _, c := range cases {
		execute(t, conn, "CREATE TABLE p."+c.job+" (id int PRIMARY KEY, n int, b blob, j json)",
			fmt.Sprintf("INSERT INTO p.%s VALUES (1, 1, x'00', %s)", c.job, fmt.Sprintf(before, strings.Repeat("x", 1000))))
		m.Submit(t, c.job, fmt.Sprintf(stopSpec, c.job))
		m.CaughtUp(t, c.job)
	}
	for _, c := range cases {
		session := connect(t, server)
		execute(t, session, "SET SESSION "+c.setting, "UPDATE p."+c.job+" SET "+c.change)
	}
	for _, c := range cases {
		if a := m.Ask(t, "status", c.job, "--wait-for", "finished", "--timeout", "30s"); a.Exit == 0 {
			t.Errorf("the job has ended in order: %s", a)
		}
		reason := m.Status(t, c.job).Reason
		if reason.Code != string(fault.MYImage) || !strings.Contains(reason.Text, "p."+c.job) || !strings.Contains(reason.Remedy, "SET PERSIST binlog_row_image") {
			t.Errorf("%s: %+v", c.job, reason)
		}
	}
}
