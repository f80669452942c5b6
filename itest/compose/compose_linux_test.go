package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/registry"
)

// project is compose.yml in an engine.
type project struct {
	*engine

	secrets string
}

// weirUser is the client name of the command line, which its rights on the bus go by.
const weirUser = "weir-cli"

// TestCompose is the whole way of a user of compose/compose.yml.
func TestCompose(t *testing.T) {
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"setup-mysql.sh", "setup-docker.sh", "images.sh"} {
		harness.Script(t, name)
	}
	p := project{engine: startEngine(t, root)}
	p.secrets = filepath.Join(p.dir, "secrets")
	harness.Script(t, "compose-secrets.sh", p.secrets)
	p.standIns(t)

	p.compose(t, "--profile", "demo", "--profile", "cli", "build")
	t.Cleanup(func() {
		if t.Failed() {
			p.tellLogs(t)
		}
	})
	p.compose(t, "--profile", "demo", "up", "--detach", "--wait", "--no-build")
	p.compose(t, "run", "--rm", "weir", "job", "submit", "/jobs/shop.yaml")
	p.caughtUp(t)
	shop, copied := p.openShop(t), p.openCopy(t)
	p.followsTheShop(t, copied)
	p.scales(t)
	if _, err := shop.Execute("SET GLOBAL event_scheduler = OFF"); err != nil {
		t.Fatal(err)
	}
	p.caughtUp(t)
	compare(t, shop, copied)
	p.compose(t, "run", "--rm", "weir", "epochs", "verify", "shop")
	p.holdsToItsRights(t)

	p.compose(t, "--profile", "demo", "--profile", "cli", "down", "--volumes")
	if left := p.must(t, nil, "ps", "--all", "--quiet"); left != "" {
		t.Errorf("containers are left:\n%s", left)
	}
	if err := p.stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// compose is a run of `docker compose` that has to succeed.
func (p project) compose(t *testing.T, args ...string) string {
	t.Helper()
	begin := time.Now()
	defer func() { t.Logf("compose %s: %.1f s", strings.Join(args, " "), time.Since(begin).Seconds()) }()
	env := []string{"WEIR_SECRETS=" + p.secrets, "WEIR_BUILD=prebuilt"}
	return p.must(t, env, append([]string{"compose", "--file", filepath.Join(p.root, "compose/compose.yml")}, args...)...)
}

func (p project) tellLogs(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	out, err := p.docker(ctx, []string{"WEIR_SECRETS=" + p.secrets}, "compose", "--file",
		filepath.Join(p.root, "compose/compose.yml"), "--profile", "demo", "logs", "--no-color", "--tail", "40").CombinedOutput()
	t.Logf("end of the logs of the containers (%v):\n%s", err, out)
}

func (p project) caughtUp(t *testing.T) {
	t.Helper()
	p.compose(t, "run", "--rm", "weir", "status", "shop", "--wait-for", "caught-up", "--timeout", "90s")
}

func (p project) secret(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.secrets, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// address is where the only container of a service is.
func (p project) address(t *testing.T, service string) string {
	t.Helper()
	id := strings.TrimSpace(p.compose(t, "ps", "--quiet", service))
	return strings.TrimSpace(p.must(t, nil, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", id))
}

func (p project) openShop(t *testing.T) *client.Conn {
	t.Helper()
	addr := p.forward(t, p.address(t, "mysql")+":3306")
	conn, err := client.ConnectWithContext(t.Context(), addr, "root", p.secret(t, "mysql_root_password"), "shop", 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func (p project) openCopy(t *testing.T) *pgx.Conn {
	t.Helper()
	addr := p.forward(t, p.address(t, "postgres")+":5432")
	conn, err := pgx.Connect(t.Context(), strings.Replace(p.secret(t, "warehouse_url"), "postgres:5432", addr, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// followsTheShop waits for a sale of after the copy.
func (p project) followsTheShop(t *testing.T, copied *pgx.Conn) {
	t.Helper()
	const newest = "SELECT max(id) FROM shop.orders"
	var first int64
	if err := copied.QueryRow(t.Context(), newest).Scan(&first); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, 30*time.Second, "a new order in the copy", func(ctx context.Context) error {
		var now int64
		if err := copied.QueryRow(ctx, newest).Scan(&now); err != nil || now > first {
			return err
		}
		return fmt.Errorf("the newest order is still %d", first)
	})
}

// scales asks for three sinks and waits for their nodes on the bus, by the port that compose.yml publishes.
func (p project) scales(t *testing.T) {
	t.Helper()
	p.compose(t, "up", "--detach", "--wait", "--no-build", "--no-recreate", "--scale", "sink=3")
	_, url, _ := strings.Cut(p.secret(t, "weir.env"), "=")
	conn, err := bus.Connect(t.Context(), bus.Options{URL: p.busURL(t, url), Name: weirUser})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reg, err := registry.Open(t.Context(), conn, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := reg.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sinks := make(map[string]bool)
	for _, n := range nodes {
		if slices.Contains(n.Capabilities, "sink:postgres") {
			sinks[n.Node] = true
		}
	}
	if len(sinks) != 3 {
		t.Errorf("three sinks are asked for, the nodes are %+v", nodes)
	}
	if healthy := p.healthy(t, "sink"); healthy != 3 {
		t.Errorf("%d sinks are healthy, want 3", healthy)
	}
}

// busURL leads an address of compose.yml's network to the published port.
func (p project) busURL(t *testing.T, url string) string {
	t.Helper()
	return strings.Replace(url, "nats:4222", p.forward(t, "127.0.0.1:4222"), 1)
}

func (p project) healthy(t *testing.T, service string) (n int) {
	t.Helper()
	for line := range strings.Lines(p.compose(t, "ps", "--format", "json", service)) {
		var c struct{ Health string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if c.Health == "healthy" {
			n++
		}
	}
	return n
}

// holdsToItsRights: nothing that the services have done so far was refused, and what a sink must not do is.
func (p project) holdsToItsRights(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(p.compose(t, "logs", "--no-color")) {
		if strings.Contains(line, "Permissions Violation") || strings.Contains(line, "WEIR-BUS-003") {
			t.Errorf("refused: %s", line)
		}
	}
	conn, err := bus.Connect(t.Context(), bus.Options{URL: p.busURL(t, p.secret(t, "nats_sink")), Name: "sink"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reg, err := conn.Bucket(t.Context(), bus.RegistryBucket)
	if err != nil {
		t.Fatal(err)
	}
	head, err := reg.Get(t.Context(), bus.HeadKey("shop"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Put(t.Context(), head.Key, head.Value); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("a sink writes a head record: %v", err)
	}
	if err := conn.DeleteData(t.Context(), "shop", 1); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("a sink deletes a stream: %v", err)
	}
}

// compare holds every row of both tables against the copy, as text.
func compare(t *testing.T, shop *client.Conn, copied *pgx.Conn) {
	t.Helper()
	for _, q := range []struct{ table, ours, theirs string }{
		{"customers", "concat_ws('|', id, name, city)", "concat_ws('|', id, name, city)"},
		{
			"orders", "concat_ws('|', id, customer, price, state, date_format(changed, '%Y-%m-%d %H:%i:%s.%f'))",
			"concat_ws('|', id, customer, price, state, to_char(changed AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'))",
		},
	} {
		source, err := shop.Execute("SELECT " + q.ours + " FROM shop." + q.table + " ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for row := range source.Values {
			text, err := source.GetString(row, 0)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, text)
		}
		rows, err := copied.Query(t.Context(), "SELECT "+q.theirs+" FROM shop."+q.table+" ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if len(want) < 500 || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows at the source, %d in the copy, equal: %t", q.table, len(want), len(got), slices.Equal(got, want))
		}
		t.Logf("%s: %d rows, all equal", q.table, len(want))
	}
}
