package mesh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/relay"
)

// Role is what a process of the mesh does; it is also the name of its program.
type Role string

// The roles there are.
const (
	Coordinator Role = "coordinator"
	CDCPostgres Role = "cdc-postgres"
	CDCMySQL    Role = "cdc-mysql"
	Sink        Role = "sink"
	Progress    Role = "progress"
)

// program is the import path of a role's own binary.
func (r Role) program() string {
	return fmt.Sprintf("weir.dev/weir/services/%s/cmd/%s", r, r)
}

// weirProgram is the import path of the command line.
const weirProgram = "weir.dev/weir/services/weir/cmd/weir"

// dataDir is the folder of `weir up`, in the mesh's own.
const dataDir = "weir-data"

// Config says what a mesh consists of.
type Config struct {
	// Roles has one entry per process.
	Roles []Role
	// Env is what processes and commands know besides, KEY=VALUE: the variables that job specs refer to.
	Env []string
	// Cluster is the number of NATS servers that replicate to each other; zero is one server alone.
	Cluster int
	// Relayed puts a relay between each process and NATS.
	Relayed bool
}

// Member is one process of a mesh. It can be killed, frozen and started again under the same name.
type Member struct {
	*harness.Process

	Role Role
	// Node is the name in the mesh; the same over all restarts.
	Node string
	// HTTP is the base URL of health and metrics.
	HTTP string
	// Way is the process's network to NATS; nil unless [Config.Relayed].
	Way *relay.Relay
}

// Mesh is a running Weir. It lasts as long as its test.
type Mesh struct {
	// NATS is the server as a process; nil for a [Up] mesh, which embeds its own, and on a cluster.
	NATS *harness.NATS
	// Cluster is the servers of [Config.Cluster]; nil without.
	Cluster *harness.NATSCluster
	// URL is where NATS clients connect, with commas between the servers of a cluster.
	URL string
	// Members are the processes, in the order of Config.Roles, then of [Mesh.Add].
	Members []*Member

	weir    string   // program
	env     []string // of processes and commands
	relayed bool
	dir     string
	secrets string

	mu      sync.Mutex
	answers []Answer
}

// Start runs NATS and one process per role, and waits until all are ready.
func Start(tb testing.TB, cfg Config) *Mesh {
	tb.Helper()
	m := newMesh(tb, cfg.Env)
	m.relayed = cfg.Relayed
	if cfg.Cluster > 0 {
		m.Cluster = harness.StartNATSCluster(tb, cfg.Cluster)
		m.URL = m.Cluster.URL()
	} else {
		m.NATS = harness.StartNATS(tb)
		m.URL = m.NATS.URL
	}
	for _, role := range cfg.Roles {
		m.Add(tb, role)
	}
	return m
}

// Add runs one more process and waits until it is ready.
func (m *Mesh) Add(tb testing.TB, role Role) *Member {
	tb.Helper()
	addr := freeAddress(tb)
	added := &Member{Role: role, Node: fmt.Sprintf("%s-%d", role, len(m.Members)+1), HTTP: "http://" + addr}
	servers := m.URL
	if m.relayed {
		added.Way = harness.StartRelay(tb, servers)
		servers = added.Way.URL(servers)
	}
	added.Process = harness.StartProcess(tb, harness.ProcessConfig{
		Name:  added.Node,
		Path:  harness.BuildBinary(tb, role.program()),
		Args:  []string{"--nats", servers, "--http", addr, "--node", added.Node},
		Env:   m.env,
		Dir:   m.dir,
		Ready: harness.HTTPReady(added.HTTP + "/readyz"),
	})
	m.Members = append(m.Members, added)
	return added
}

// Up runs everything in one process, `weir up` with the given job files, and waits until it is ready.
func Up(tb testing.TB, env []string, jobs ...string) *Mesh {
	tb.Helper()
	m := newMesh(tb, env)
	nats, addr := freeAddress(tb), freeAddress(tb)
	m.URL = "nats://" + nats
	args := slices.Concat([]string{"up"}, jobs, []string{
		"--data-dir", filepath.Join(m.dir, dataDir), "--nats-listen", nats, "--http", addr,
	})
	m.Members = []*Member{{
		Process: harness.StartProcess(tb, harness.ProcessConfig{
			Name: "weir-up", Path: m.weir, Args: args, Env: env, Dir: m.dir,
			Ready: harness.HTTPReady("http://" + addr + "/readyz"),
		}),
		HTTP: "http://" + addr,
	}}
	return m
}

func newMesh(tb testing.TB, env []string) *Mesh {
	tb.Helper()
	dir := tb.TempDir()
	secrets := filepath.Join(dir, "secrets")
	if err := os.Mkdir(secrets, 0o700); err != nil {
		tb.Fatal(err)
	}
	return &Mesh{weir: harness.BuildBinary(tb, weirProgram), env: env, dir: dir, secrets: secrets}
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	port, err := harness.FreePort(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Of lists the members of a role.
func (m *Mesh) Of(role Role) []*Member {
	var found []*Member
	for _, member := range m.Members {
		if member.Role == role {
			found = append(found, member)
		}
	}
	return found
}

// Node finds a member by its name; nil when there is none.
func (m *Mesh) Node(name string) *Member {
	for _, member := range m.Members {
		if member.Node == name {
			return member
		}
	}
	return nil
}

// Secret stores a value in a file that job specs name by its [Mesh.Reference]. Storing it again replaces it for every
// process at once.
func (m *Mesh) Secret(tb testing.TB, name, value string) {
	tb.Helper()
	file := filepath.Join(m.secrets, name)
	if err := os.WriteFile(file+".new", []byte(value+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		tb.Fatal(err)
	}
}

// Reference is how a job spec names a stored secret.
func (m *Mesh) Reference(name string) string {
	return "${file:" + filepath.Join(m.secrets, name) + "}"
}

// Store is the folder where the NATS server keeps its files; not for a cluster.
func (m *Mesh) Store() string {
	if m.NATS == nil {
		return filepath.Join(m.dir, dataDir, "nats")
	}
	return filepath.Join(filepath.Dir(m.NATS.LogPath()), "jetstream")
}

// File writes a file that commands can name by its base name.
func (m *Mesh) File(tb testing.TB, name, text string) string {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

// Submit stores a job spec and starts the job, and waits until it runs.
func (m *Mesh) Submit(tb testing.TB, job, spec string) {
	tb.Helper()
	m.Must(tb, "job", "submit", m.File(tb, job+".yaml", spec))
	m.Must(tb, "status", job, "--wait-for", "running", "--timeout", "60s")
}

// Outputs returns everything that was written to terminals and logs so far, by its origin.
func (m *Mesh) Outputs(ctx context.Context, tb testing.TB) map[string]string {
	tb.Helper()
	out := make(map[string]string)
	read := func(p *harness.Process) {
		b, err := os.ReadFile(p.LogPath())
		if err != nil {
			tb.Fatal(err)
		}
		out["log "+filepath.Base(p.LogPath())] = string(b)
	}
	for _, member := range m.Members {
		read(member.Process)
		out["metrics of "+member.Node] = member.Metrics(ctx, tb)
	}
	if m.NATS != nil {
		read(m.NATS.Process)
	}
	if m.Cluster != nil {
		for _, s := range m.Cluster.Servers {
			read(s.Process)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, a := range m.answers {
		out[fmt.Sprintf("command %d: weir %q", i+1, a.Args)] = a.Stdout + a.Stderr
	}
	return out
}
