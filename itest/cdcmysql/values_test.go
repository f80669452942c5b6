package cdcmysql

import (
	"slices"
	"testing"

	"weir.dev/weir/pkg/spec"
)

// A label is the one that its number has at the place of the change: behind an ALTER that gives numbers to other labels, and for the
// number 0, which is that of a label which the column does not have (O41).
func TestLabelsChange(t *testing.T) {
	t.Parallel()
	for name, server := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server, "CREATE DATABASE labels", "CREATE TABLE labels.t (id int PRIMARY KEY, e enum('a','b'), s set('x','y','z'))")
			a := start(t, server, spec.SnapshotNever, "labels.*")
			run(
				t, server, "SET sql_mode = ''", "INSERT INTO labels.t VALUES (1, 'b', 'x,z'), (2, 'none', '')",
				"ALTER TABLE labels.t MODIFY e enum('b','a'), MODIFY s set('z','new','x')", "INSERT INTO labels.t VALUES (3, 'b', 'x,z'), (4, 'a', 'new')",
				"DELETE FROM labels.t WHERE id = 1",
			)
			wantRows(
				t, a.take(t, 5), "insert labels.t e=b id=1 s=x,z", "insert labels.t e= id=2 s=", "insert labels.t e=b id=3 s=z,x", "insert labels.t e=a id=4 s=new",
				"delete labels.t e=b id=1 s=z,x",
			)
		})
	}
}

// Keys that no calendar has are told apart, and lie in one chunk of the copy and no other (O39).
func TestZeroDatesInKeys(t *testing.T) {
	t.Parallel()
	for name, server := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(
				t, server, "CREATE DATABASE zeros", "SET sql_mode = ''", "CREATE TABLE zeros.t (d date, at datetime(3), n int, PRIMARY KEY (d, at))",
				`INSERT INTO zeros.t VALUES ('0000-00-00', '0000-00-00', 1), ('0000-00-00', '2024-00-10', 2), ('2024-00-10', '0000-00-00', 3), ('2024-00-10', '2024-01-01', 4),
					('2024-01-00', '2024-01-01', 5), ('2024-01-01', '0000-00-00', 6), ('2024-01-01', '2024-01-01 10:00:00.5', 7)`,
			)
			a, err := openSource(t, server, nil, &spec.MySQLSource{Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: 2}}, "zeros.*")
			if err != nil {
				t.Fatal(err)
			}
			copied := make([]string, 7)
			for i, c := range a.take(t, len(copied)) {
				copied[i] = c.String()
			}
			slices.Sort(copied)
			want := []string{
				"read zeros.t at=2024-01-01 10:00:00.5 d=2024-01-01 n=7",
				"read zeros.t at=2024-01-01 00:00:00 d=[2024-00-10] n=4",
				"read zeros.t at=2024-01-01 00:00:00 d=[2024-01-00] n=5",
				"read zeros.t at=[0000-00-00 00:00:00.000] d=2024-01-01 n=6",
				"read zeros.t at=[0000-00-00 00:00:00.000] d=[0000-00-00] n=1",
				"read zeros.t at=[0000-00-00 00:00:00.000] d=[2024-00-10] n=3",
				"read zeros.t at=[2024-00-10 00:00:00.000] d=[0000-00-00] n=2",
			}
			slices.Sort(want)
			if !slices.Equal(copied, want) {
				t.Fatalf("copied are\n%q\nwant\n%q", copied, want)
			}
			run(t, server, "SET sql_mode = ''", "UPDATE zeros.t SET n = 8 WHERE d = '0000-00-00' AND at = '0000-00-00'", "DELETE FROM zeros.t WHERE d = '2024-00-10'")
			logged := a.take(t, 3)
			wantRows(
				t, logged, "update_after zeros.t at=[0000-00-00 00:00:00.000] d=[0000-00-00] n=8", "delete zeros.t at=[0000-00-00 00:00:00.000] d=[2024-00-10] n=3",
				"delete zeros.t at=2024-01-01 00:00:00 d=[2024-00-10] n=4",
			)
		})
	}
}
