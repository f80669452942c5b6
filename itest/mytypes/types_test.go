package mytypes

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// zone is that of the source's server, in which nothing may be read.
const zone = "+05:30"

const jobSpec = `apiVersion: weir/v1
job: types
epoch: {interval: 250ms}
sources:
  db:
    type: mysql
    url: ${SOURCE_URL}
    tables: ["m.*"]
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, mode: upsert}
  lines: {from: [db], type: files, mode: changelog, files: {path: %[1]s/lines, format: jsonl}}
  parquet: {from: [db], type: files, mode: changelog, files: {path: %[1]s/parquet, format: parquet}}
`

// world is the product between two servers, the matrix's tables at the source.
type world struct {
	source *harness.MySQL
	target *harness.Postgres
	mesh   *mesh.Mesh
	dir    string // of the files sinks
}

func startServer(t *testing.T, maria bool) *harness.MySQL {
	t.Helper()
	cfg := harness.MySQLConfig{Settings: map[string]string{"default_time_zone": zone}}
	if maria {
		return harness.StartMariaDB(t, cfg)
	}
	return harness.StartMySQL(t, cfg)
}

// connect opens a session that may write what no calendar has.
func connect(t *testing.T, server *harness.MySQL) *client.Conn {
	t.Helper()
	conn, err := server.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	execute(t, conn, "SET NAMES utf8mb4", "SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES,NO_BACKSLASH_ESCAPES'")
	return conn
}

func execute(t *testing.T, conn *client.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Execute(sql); err != nil {
			t.Fatalf("%v\n%.400s", err, sql)
		}
	}
}

// start brings the rows of families into the product: by a snapshot, and once more by the log.
func start(t *testing.T, server *harness.MySQL, families []family) *world {
	t.Helper()
	w := &world{source: server, target: harness.StartPostgres(t, harness.PostgresConfig{}), dir: t.TempDir()}
	conn := connect(t, server)
	execute(t, conn, "CREATE DATABASE m")
	for _, f := range families {
		execute(t, conn, f.createSQL())
		execute(t, conn, f.insertSQL()...)
	}
	w.mesh = mesh.Up(t, []string{"SOURCE_URL=" + server.URL(""), "TARGET_URL=" + w.target.URL("postgres")})
	w.mesh.Submit(t, "types", fmt.Sprintf(jobSpec, w.dir))
	w.mesh.CaughtUp(t, "types")
	for _, f := range families {
		execute(t, conn, f.againSQL()...)
	}
	w.mesh.CaughtUp(t, "types")
	return w
}

func TestMatrix(t *testing.T) {
	for name, own := range map[string][]family{"mysql": ofMySQL, "mariadb": ofMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			families := slices.Concat(common, own, random(rand.New(rand.NewPCG(rig.Seed(t), 0)), name == "mysql"), []family{big})
			w := start(t, startServer(t, name == "mariadb"), families)
			var shared, owned strings.Builder
			for i, f := range families {
				lines, copied, columnar := w.lines(t, f), w.copied(t, f), w.parquet(t, f)
				w.agree(t, f, "json", lines)
				w.sameAsSelect(t, f, lines)
				w.agree(t, f, "postgres", copied)
				w.agree(t, f, "parquet", columnar)
				switch {
				case f.plain:
				case i < len(common):
					render(&shared, f, lines, copied, columnar)
				default:
					render(&owned, f, lines, copied, columnar)
				}
			}
			harness.Golden(t, *update, "common.golden", shared.String())
			harness.Golden(t, *update, name+".golden", owned.String())
		})
	}
}

// agree holds the rows that came by the log against those that were copied.
func (w *world) agree(t *testing.T, f family, where string, have content) {
	t.Helper()
	for id := 1; id <= f.size(); id++ {
		ways := []string{"read", "insert", "update_after"}
		if have.current {
			ways = []string{""}
		}
		for i, way := range ways {
			at := id + again
			if i == 0 && !have.current {
				at = id
			}
			got, want := have.rows[rowKey{way, at}], have.rows[rowKey{ways[0], id}]
			if got == nil || want == nil {
				t.Errorf("%s, %s: no row %d by %q", f.name, where, at, way)
				continue
			}
			for i, c := range f.columns {
				column := fmt.Sprintf("c%d", i+1)
				if got[column] != want[column] {
					t.Errorf("%s %s in %s, row %d:\n by %s %.300s\n copied %.300s", f.name, c.sqlType, where, id, way, got[column], want[column])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s in %s, row %d: columns %v by %s, copied %v", f.name, where, id, slices.Sorted(maps.Keys(got)), way, slices.Sorted(maps.Keys(want)))
			}
		}
	}
}

// random are values nobody has chosen, of the types whose two forms are computed.
func random(r *rand.Rand, documents bool) []family {
	const count = 40
	f := family{name: "random", plain: true}
	add := func(sqlType string, value func() string) {
		c := column{sqlType: sqlType}
		for range count {
			c.values = append(c.values, value())
		}
		f.columns = append(f.columns, c)
	}
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		return b.String()
	}
	sign := func() string { return []string{"", "-"}[r.IntN(2)] }
	for _, d := range [][2]int{{65, 30}, {20, 3}, {9, 9}, {18, 9}, {19, 0}, {38, 19}, {40, 1}} {
		add(fmt.Sprintf("decimal(%d,%d)", d[0], d[1]), func() string {
			return fmt.Sprintf("'%s%s.%s'", sign(), digits(r.IntN(d[0]-d[1]+1)), digits(d[1]))
		})
	}
	for frac := range 7 {
		add(fmt.Sprintf("time(%d)", frac), func() string {
			return fmt.Sprintf("'%s%d:%02d:%02d.%s'", sign(), r.IntN(838), r.IntN(60), r.IntN(59), digits(frac))
		})
		add(fmt.Sprintf("datetime(%d)", frac), func() string {
			return fmt.Sprintf("'%04d-%02d-%02d %02d:%02d:%02d.%s'", 1+r.IntN(9998), 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), digits(frac))
		})
	}
	add("float", func() string {
		return fmt.Sprintf("%s%d.%se%d", sign(), 1+r.IntN(9), digits(8), r.IntN(76)-38)
	})
	double := func() string {
		for {
			v := math.Float64frombits(r.Uint64())
			if r.IntN(2) == 0 {
				v = math.Ldexp(r.Float64(), r.IntN(120)-60)
			}
			if a := math.Abs(v); a < 1e307 && a > 1e-300 {
				return fmt.Sprintf("%s%e", sign(), a)
			}
		}
	}
	add("double", double)
	if documents {
		add("json", func() string {
			doubles := make([]string, 100)
			for i := range doubles {
				doubles[i] = strings.TrimPrefix(double(), "+")
			}
			return "'[" + strings.Join(doubles, ",") + "]'"
		})
	}
	return []family{f}
}

// line is a row as the JSON file has it.
type line struct {
	Op           string
	Row, Special map[string]json.RawMessage
}

// values are the row's, a special one in brackets.
func (l line) values() map[string]string {
	row := make(map[string]string)
	for column, v := range l.Row {
		row[column] = string(v)
		if s, ok := l.Special[column]; ok {
			row[column] += " [" + string(s) + "]"
		}
	}
	return row
}

func parseLine(tb testing.TB, text []byte) line {
	tb.Helper()
	var l line
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&l); err != nil {
		tb.Fatalf("%v in %.400s", err, text)
	}
	return l
}
