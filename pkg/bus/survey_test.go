package bus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
)

// ⚑ A survey tells what is there and changes nothing.
func TestSurvey(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	ctx := t.Context()
	createData(t, c, "shop", 3)
	r, err := c.OpenReceiver(ctx, bus.ReceiverConfig{Job: "shop", Fence: 3, Subtask: plan.SubtaskID{Vertex: "out"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	v, err := c.Survey(ctx)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Survey(ctx)
	if err != nil || len(again.Streams) != len(v.Streams) {
		t.Errorf("%d streams, then %+v, %v", len(v.Streams), again, err)
	}
	if v.Server.Version == "" || v.Server.MaxPayload != 8<<20 || v.Server.Cluster != "" || v.Room == nil || v.Unlisted != "" {
		t.Errorf("%+v", v)
	}
	if v.Clock == nil || v.Clock.Ahead.Abs() > time.Second || v.Clock.Error <= 0 {
		t.Errorf("clock %+v", v.Clock)
	}
	if v.User == nil || v.User.Restricted || v.User.Account == "" {
		t.Errorf("user %+v", v.User)
	}
	at := slices.IndexFunc(v.Streams, func(s bus.StreamSeen) bool { return s.Name == bus.DataStream("shop", 3) })
	if at < 0 {
		t.Fatalf("the data stream is missing from %+v", v.Streams)
	}
	job, attempt := v.Streams[at].Owner()
	if d := &v.Streams[at]; job != "shop" || attempt != "3" || !d.Ours() || d.Storage != "memory" || d.Retention != "workqueue" || d.Consumers != 1 {
		t.Errorf("%+v", d)
	}
	all, err := c.Consumers(ctx, bus.DataStream("shop", 3))
	if err != nil || len(all) != 1 || all[0].Name != "out-0" || all[0].Metadata["weir.vertex"] != "out" || all[0].Filter == "" {
		t.Errorf("consumers %+v, %v", all, err)
	}
}

func TestSurveyOfAPoorServer(t *testing.T) {
	t.Parallel()
	without := meshtest.StartServer(t, meshtest.ServerOptions{Configure: func(o *server.Options) { o.JetStream = false }})
	v, err := connect(t, without).Survey(t.Context())
	if err != nil || v.Room != nil || v.NoJetStream == "" {
		t.Errorf("without JetStream: %+v, %v", v, err)
	}
	limited := meshtest.StartServer(t, meshtest.ServerOptions{TCP: true, Configure: func(o *server.Options) {
		o.Users = []*server.User{{Username: "u", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.INFO", "$SYS.REQ.USER.INFO"}, Deny: []string{"secret"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}}
	}})
	c := connectAs(t, bus.Options{Name: "test", URL: strings.Replace(limited.URL(), "nats://", "nats://u:p@", 1)})
	v, err = c.Survey(t.Context())
	if err != nil || v.Room == nil || v.Unlisted == "" || len(v.Streams) > 0 || v.Clock != nil {
		t.Fatalf("with few rights: %+v, %v", v, err)
	}
	if u := v.User; u == nil || !u.Restricted || u.User != "u" || u.Publish.Permits("$JS.API.STREAM.LIST") || !u.Publish.Permits("$JS.API.INFO") || !u.Subscribe.Permits("_INBOX.x") {
		t.Errorf("user %+v", u)
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		allow, deny []string
		subject     string
		want        bool
	}{
		{nil, nil, "a.b", true},
		{[]string{"a.>"}, nil, "a.b.c", true},
		{[]string{"a.>"}, nil, "a", false},
		{[]string{"a.*"}, nil, "a.b.c", false},
		{[]string{"a.*.c"}, nil, "a.*.c", true},
		{[]string{"a.b.c"}, nil, "a.*.c", false},
		{[]string{"a.*"}, nil, "a.>", false},
		{[]string{">"}, nil, "a.>", true},
		{[]string{"b", "a.b"}, nil, "a.b", true},
		{nil, []string{"a.>"}, "a.b", false},
		{nil, []string{"a.b"}, "a.*", false},
		{nil, []string{"a.b"}, "a.c", true},
		{[]string{"a.>"}, []string{"a.b.*"}, "a.b", true},
		{[]string{"a.>"}, []string{"a.*.x"}, "a.b.>", false},
	} {
		if got := (bus.SubjectAC{Allow: tc.allow, Deny: tc.deny}).Permits(tc.subject); got != tc.want {
			t.Errorf("allow %q, deny %q: %s permitted: %t", tc.allow, tc.deny, tc.subject, got)
		}
	}
}
