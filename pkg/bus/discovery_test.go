package bus_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
)

// raw is a client that knows nothing of Weir.
func raw(t *testing.T, s *meshtest.Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// discovered asks all services of the mesh, as `nats micro` does.
func discovered[T any](t *testing.T, s *meshtest.Server, verb micro.Verb, name string, want int) []T {
	t.Helper()
	nc := raw(t, s)
	subject, err := micro.ControlSubject(verb, name, "")
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest(subject, inbox.Subject, nil); err != nil {
		t.Fatal(err)
	}
	var all []T
	for {
		wait := 10 * time.Second // for those that are wanted
		if len(all) >= want {
			wait = 300 * time.Millisecond // for more
		}
		m, err := inbox.NextMsg(wait)
		if errors.Is(err, nats.ErrTimeout) || err == nil && len(m.Data) == 0 {
			return all
		}
		var one T
		if err == nil {
			err = json.Unmarshal(m.Data, &one)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// ⚑ Every process answers for itself, under the name of its service, and says what is true now.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	s, c := mesh(t)
	state := "starting"
	for node, d := range map[string]bus.Discovery{
		"n1": {Service: "sink", Version: "v1.2.3-4-gabc", HTTP: "127.0.0.1:8422", Metadata: map[string]string{"capabilities": "sink:files"}, Now: func() any { return map[string]string{"state": state} }},
		"n2": {Service: "sink", Version: "6a22834"},
		"n3": {Service: "cdc-postgres", Version: "dev"},
	} {
		if err := connect(t, s).ServePing(node, d); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, func() bool { return c.Ping(t.Context(), node) == nil })
	}
	sinks := make(map[string]micro.Info)
	for _, i := range discovered[micro.Info](t, s, micro.InfoVerb, "weir-sink", 2) {
		sinks[i.Metadata["node"]] = i
	}
	if len(sinks) != 2 || sinks["n1"].Version != "1.2.3-4-gabc" || sinks["n2"].Version != "0.0.0" || sinks["n2"].Metadata["build"] != "6a22834" {
		t.Errorf("sinks %+v", sinks)
	}
	want := map[string]string{"node": "n1", "role": "sink", "build": "v1.2.3-4-gabc", "http": "127.0.0.1:8422", "capabilities": "sink:files"}
	if got := sinks["n1"].Metadata; !maps.Equal(got, want) {
		t.Errorf("metadata %v, want %v", got, want)
	}
	if all := discovered[micro.Ping](t, s, micro.PingVerb, "", 3); len(all) != 3 {
		t.Errorf("%d services answer", len(all))
	}
	state = "running"
	var found []bus.Discovered
	waitUntil(t, func() bool { // it waits for half a second only
		var err error
		found, err = c.Discover(t.Context())
		return err == nil && len(found) >= 3
	})
	if len(found) != 3 || found[1].Metadata["node"] != "n1" || string(found[1].Now) != `{"state":"running"}` {
		t.Errorf("discovered %+v", found)
	}
	for _, st := range discovered[micro.Stats](t, s, micro.StatsVerb, "weir-sink", 2) {
		if data := string(st.Endpoints[0].Data); (st.Metadata["node"] == "n1") != (data == `{"state":"running"}`) {
			t.Errorf("%s says %q", st.Metadata["node"], data)
		}
	}
}

// ⚑ Everything that Weir makes on the bus says what it is, of which job, attempt, life and subtask.
func TestAssetsExplainThemselves(t *testing.T) {
	t.Parallel()
	s, c := mesh(t)
	ctx := t.Context()
	if err := c.CreateData(ctx, bus.DataConfig{Job: "shop", Fence: 3, Life: "l1"}); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureDLQ(ctx, "shop", 0); err != nil {
		t.Fatal(err)
	}
	r, err := c.OpenReceiver(ctx, bus.ReceiverConfig{Job: "shop", Fence: 3, Subtask: plan.SubtaskID{Vertex: "out", Index: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := c.WatchEvents(ctx, "*", time.Time{})
	defer w.Close()
	expect(t, w, bus.CaughtUp, "")

	js, err := jetstream.New(raw(t, s))
	if err != nil {
		t.Fatal(err)
	}
	streams := 0
	consumers := make(map[string]map[string]string)
	list := js.ListStreams(ctx)
	for i := range list.Info() {
		streams++
		if i.Config.Description == "" || i.Config.Metadata["weir"] == "" {
			t.Errorf("stream %s: %q, %v", i.Config.Name, i.Config.Description, i.Config.Metadata)
		}
		st, err := js.Stream(ctx, i.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		cl := st.ListConsumers(ctx)
		for ci := range cl.Info() {
			if ci.Config.Description == "" || ci.Config.Metadata["weir"] == "" {
				t.Errorf("consumer %s of %s: %q, %v", ci.Name, ci.Stream, ci.Config.Description, ci.Config.Metadata)
			}
			consumers[ci.Stream] = ours(ci.Config.Metadata)
		}
		if cl.Err() != nil {
			t.Fatal(cl.Err())
		}
		if i.Config.Name == bus.DataStream("shop", 3) {
			want := map[string]string{"weir": "data", "weir.job": "shop", "weir.fence": "3", "weir.life": "l1"}
			if got := ours(i.Config.Metadata); !maps.Equal(got, want) {
				t.Errorf("data stream: %v, want %v", got, want)
			}
		}
	}
	if list.Err() != nil || streams < 9 {
		t.Fatalf("%d streams, %v", streams, list.Err())
	}
	want := map[string]string{
		"weir": "input", "weir.job": "shop", "weir.fence": "3", "weir.life": "l1", "weir.vertex": "out", "weir.subtask": "out-1",
	}
	if got := consumers[bus.DataStream("shop", 3)]; !maps.Equal(got, want) {
		t.Errorf("receiver: %v, want %v", got, want)
	}
	if consumers[bus.EventStream]["weir"] != "watch" {
		t.Errorf("watch: %v", consumers[bus.EventStream])
	}
}

// ours leaves out what the server adds.
func ours(m map[string]string) map[string]string {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(k, _ string) bool { return k != "weir" && !strings.HasPrefix(k, "weir.") })
	return m
}
