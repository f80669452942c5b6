package position

import "testing"

func TestDistances(t *testing.T) {
	t.Parallel()
	of := func(family Type, field, value string) Position {
		return Position{Type: family, Version: 1, Fields: map[string]string{field: value}}
	}
	lsn := func(v string) Position { return of(PostgresLSN, "lsn", v) }
	binlog := func(v string) Position { return of(MySQLBinlog, FieldBinlog, v) }
	gtids := func(v string) Position { return of(MySQLGTID, FieldGTIDs, v) }
	maria := func(v string) Position { return of(MariaDBGTID, FieldGTIDs, v) }
	for name, tc := range map[string]struct {
		a, b Position
		n    uint64
		unit Unit
		ok   bool
	}{
		"log":                       {lsn("0/10"), lsn("1/20"), 1<<32 + 0x10, Bytes, true},
		"log, behind":               {lsn("1/20"), lsn("0/10"), 0, Bytes, true},
		"one file":                  {binlog("b.000042:100"), binlog("b.000042:1842"), 1742, Bytes, true},
		"two files":                 {binlog("b.000042:100"), binlog("b.000043:4"), 0, Bytes, false},
		"another server":            {binlog("a.000042:100"), binlog("b.000042:1842"), 0, "", false},
		"transactions":              {gtids(serverA + ":1-5"), gtids(serverA + ":1-9," + serverB + ":3-4"), 6, Transactions, true},
		"each has some":             {gtids(serverA + ":1-5"), gtids(serverB + ":1"), 0, "", false},
		"transactions of a MariaDB": {maria("0-1-5,1-1-7"), maria("0-2-9,1-1-7,2-1-3"), 7, Transactions, true},
		"rows":                      {of(Generator, "next", "3"), of(Generator, "next", "10"), 7, Rows, true},
		"families":                  {lsn("0/10"), gtids(serverA + ":1-5"), 0, "", false},
	} {
		n, unit, ok := Distance(tc.a, tc.b)
		if ok != tc.ok || ok && (n != tc.n || unit != tc.unit) {
			t.Errorf("%s: %d %s %t", name, n, unit, ok)
		}
	}
}
