package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"weir.dev/weir/services/weir/verify/process"
	"weir.dev/weir/services/weir/verify/relay"
)

// The roles of processes, as `weir serve` takes them.
const (
	coordinator = "coordinator"
	sinks       = "sink"
)

// node is one process of the mesh, with a folder and a name of its own.
type node struct {
	*process.Process

	name, role, http string
	way              *relay.Relay // its network to NATS; nil unless the class wants one
}

// mesh is a NATS server and the processes around it.
type mesh struct {
	program string
	dir     string
	env     []string
	relayed bool

	bus      *process.Process
	busArgs  []string
	store    string // folder of the bus
	url      string // of the bus
	nodes    []*node
	database []*relay.Relay // in front of source and target
}

// startBus runs the NATS server.
func (m *mesh) startBus(ctx context.Context) error {
	port, err := process.FreePort(ctx)
	if err != nil {
		return err
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	health, err := process.FreePort(ctx)
	if err != nil {
		return err
	}
	monitor := "127.0.0.1:" + strconv.Itoa(health)
	m.url = "nats://" + addr
	m.store = filepath.Join(m.dir, "bus", "store")
	if err := os.MkdirAll(m.store, 0o700); err != nil {
		return err
	}
	m.busArgs = []string{"verify-bus", "--listen", addr, "--http", monitor, "--store", m.store}
	m.bus = process.New(process.Config{
		Name: "bus", Path: m.program, Dir: filepath.Join(m.dir, "bus"),
		Args:  m.busArgs,
		Ready: process.HTTPReady("http://" + monitor + "/healthz"),
	})
	return m.bus.Start(ctx)
}

// add runs one more process and waits until it is ready.
func (m *mesh) add(ctx context.Context, role string) error {
	port, err := process.FreePort(ctx)
	if err != nil {
		return err
	}
	addr := "127.0.0.1:" + strconv.Itoa(port)
	n := &node{name: fmt.Sprintf("%s-%d", role, len(m.nodes)+1), role: role, http: "http://" + addr}
	dir := filepath.Join(m.dir, n.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	url := m.url
	if m.relayed {
		if n.way, err = relay.Start(ctx, url); err != nil {
			return err
		}
		url = n.way.URL(url)
	}
	n.Process = process.New(process.Config{
		Name: n.name, Path: m.program, Dir: dir, Env: m.env,
		Args:  []string{"serve", role, "--nats", url, "--http", addr, "--node", n.name, "--log-format", "json"},
		Ready: process.HTTPReady(n.http + "/readyz"),
	})
	m.nodes = append(m.nodes, n)
	return n.Start(ctx)
}

// of lists the nodes of a role that run.
func (m *mesh) of(role string) []*node {
	var found []*node
	for _, n := range m.nodes {
		if n.role == role && n.Running() {
			found = append(found, n)
		}
	}
	return found
}

// named finds a node.
func (m *mesh) named(name string) (*node, error) {
	for _, n := range m.nodes {
		if n.name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("node %q is no process of this run", name)
}

// end kills every process.
func (m *mesh) end() {
	for _, n := range m.nodes {
		n.Kill()
	}
	if m.bus != nil {
		m.bus.Kill()
	}
	for _, n := range m.nodes {
		if n.way != nil {
			n.way.Close()
		}
	}
	for _, r := range m.database {
		r.Close()
	}
}

// killed ends processes by SIGKILL and proves that this is how they ended.
func killed(ctx context.Context, nodes ...*node) (string, error) {
	var proof string
	for _, n := range nodes {
		if !n.Running() {
			return "", fmt.Errorf("%s had ended by itself; end of its log:\n%s", n.name, n.LogTail(2<<10))
		}
	}
	for _, n := range nodes {
		pid := n.PID()
		n.Kill()
		_, err := n.Wait(ctx)
		if err == nil {
			return "", errors.New(n.name + " ended in order")
		}
		if proof != "" {
			proof += "; "
		}
		proof += fmt.Sprintf("process %d: %s", pid, err)
	}
	return proof, nil
}
