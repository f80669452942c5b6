package busdoctor

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/preflight"
)

// well is a patient with whom nothing is wrong.
func well() Patient {
	v := &bus.Survey{
		Server: bus.ServerSeen{Name: "n1", Version: "2.15.2", MaxPayload: 8 << 20},
		User:   &bus.UserSeen{User: "weir", Account: "W"},
		Room:   &bus.Room{MaxMemory: -1, MaxStorage: 1 << 30, Storage: 1 << 20, MaxStreams: -1, MaxConsumers: -1},
		Clock:  &bus.Clock{Ahead: 3 * time.Millisecond, Error: time.Millisecond},
	}
	for _, p := range parts() {
		v.Streams = append(v.Streams, bus.StreamSeen{Name: p.stream, Storage: p.storage, Replicas: 1, MaxBytes: -1, Metadata: map[string]string{"weir": "base"}})
	}
	return Patient{Survey: v, Monitor: &Monitor{SyncAlways: true}, JobsKnown: true, Jobs: []job.Head{
		{Job: "shop", Life: "l1", Phase: job.Running, Fence: 3},
		{Job: "old", Life: "l0", Phase: job.Deleted, Fence: 9},
	}}
}

// state is the patient's stream of state.
func (p *Patient) state() *bus.StreamSeen {
	e := examination{Patient: *p}
	return e.stream(bus.StateStream)
}

func (p *Patient) with(s bus.StreamSeen) { p.Survey.Streams = append(p.Survey.Streams, s) }

func data(name, jobName, attempt string) bus.StreamSeen {
	return bus.StreamSeen{Name: name, Storage: "memory", Metadata: map[string]string{"weir": "data", "weir.job": jobName, "weir.fence": attempt}}
}

// ⚑ Each thing that can be wrong is found, as bad as it is, with its code and a remedy; and nothing else is.
func TestExamine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil  func(p *Patient)
		check  string
		status preflight.Status
		code   fault.Code
		found  string
	}{
		"well":          {spoil: func(*Patient) {}},
		"embedded":      {spoil: func(p *Patient) { p.Monitor, p.Embedded = nil, true }},
		"fresh":         {spoil: func(p *Patient) { p.Survey.Streams = nil }},
		"small payload": {spoil: func(p *Patient) { p.Survey.Server.MaxPayload = 1 << 20 }},
		"letters stay": {spoil: func(p *Patient) {
			p.with(bus.StreamSeen{Name: "WEIR_DLQ_shop", MaxBytes: 100, Bytes: 79, Metadata: map[string]string{"weir.job": "shop"}})
		}},
		"own attempt": {spoil: func(p *Patient) { p.with(data("WEIR_shop_3", "shop", "3")) }},
		"own state":   {spoil: func(p *Patient) { p.Lives = map[string]int{"l1": 4} }},
		"jobs unknown": {spoil: func(p *Patient) {
			p.Jobs, p.JobsKnown = nil, false
			p.with(data("WEIR_shop_3", "shop", "3"))
		}},

		"too old":     {func(p *Patient) { p.Survey.Server.Version = "2.10.29" }, "version", preflight.Error, fault.BusTooOld, "2.10.29"},
		"unsound":     {func(p *Patient) { p.Survey.Server.Version = "2.12.1" }, "version", preflight.Warning, "", "2.12.1"},
		"odd version": {func(p *Patient) { p.Survey.Server.Version = "main" }, "version", preflight.Unknown, "", "main"},
		"no jetstream": {
			func(p *Patient) { p.Survey.Room, p.Survey.NoJetStream = nil, "JetStream is not enabled" }, "jetstream", preflight.Error, fault.BusNoJetStream, "not enabled",
		},
		"tiny payload": {func(p *Patient) { p.Survey.Server.MaxPayload = 64 << 10 }, "max_payload", preflight.Error, fault.BusMaxPayload, "65536"},
		"unseen":       {func(p *Patient) { p.Monitor = nil }, "sync_interval", preflight.Unknown, "", "a client cannot see it"},
		"no monitor": {
			func(p *Patient) { p.Monitor, p.MonitorWhy = nil, "connection refused" }, "sync_interval", preflight.Unknown, "", "connection refused",
		},
		"lazy": {func(p *Patient) { p.Monitor = &Monitor{SyncInterval: 2 * time.Minute} }, "sync_interval", preflight.Warning, "", "every 2m0s"},
		"missing": {
			func(p *Patient) {
				p.Survey.Streams = slices.DeleteFunc(p.Survey.Streams, func(s bus.StreamSeen) bool { return s.Name == bus.EventStream })
			}, "base_streams", preflight.Warning, "", "it is missing",
		},
		"somebody's": {func(p *Patient) { p.state().Metadata = nil }, "base_streams", preflight.Error, fault.BusStreamShape, "has not made it"},
		"in memory":  {func(p *Patient) { p.state().Storage = "memory" }, "base_streams", preflight.Error, fault.BusStreamShape, "Weir needs file"},
		"in the way": {
			func(p *Patient) { p.with(bus.StreamSeen{Name: "ALL", Subjects: []string{"orders", "weir.data.>"}}) },
			"foreign_stream", preflight.Error, fault.BusStreamShape, "weir.data.>",
		},
		"greedy": {func(p *Patient) { p.with(bus.StreamSeen{Name: "ALL", Subjects: []string{">"}}) }, "foreign_stream", preflight.Error, fault.BusStreamShape, "stores >"},
		"one copy": {
			func(p *Patient) { p.Survey.Server.Cluster = "c" }, "replicas", preflight.Warning, "", "one copy in cluster c",
		},
		"offline": {
			func(p *Patient) { p.state().Peers = []bus.PeerSeen{{Name: "n2", Offline: true}} }, "replicas", preflight.Warning, "", "n2 is offline",
		},
		"behind": {
			func(p *Patient) { p.state().Peers = []bus.PeerSeen{{Name: "n2", Lag: 7}} }, "replicas", preflight.Warning, "", "7 entries behind",
		},
		"nearly full": {func(p *Patient) { p.Survey.Room.Storage = 900 << 20 }, "storage", preflight.Warning, "", "88 %"},
		"full":        {func(p *Patient) { p.Survey.Room.Storage = 1 << 30 }, "storage", preflight.Error, fault.BusFull, "100 %"},
		"no memory":   {func(p *Patient) { p.Survey.Room.Memory, p.Survey.Room.MaxMemory = 99, 100 }, "memory", preflight.Error, fault.BusFull, "99 bytes of 100 bytes"},
		"no streams":  {func(p *Patient) { p.Survey.Room.Streams, p.Survey.Room.MaxStreams = 10, 10 }, "streams_limit", preflight.Error, fault.BusFull, "10 of 10"},
		"bounds":      {func(p *Patient) { p.Survey.Room.BoundsRequired = true }, "max_bytes_required", preflight.Error, fault.BusStreamShape, "bound"},
		"full of letters": {
			func(p *Patient) {
				p.with(bus.StreamSeen{Name: "WEIR_DLQ_shop", MaxBytes: 100, Bytes: 80, Metadata: map[string]string{"weir.job": "shop"}})
			}, "letters_room", preflight.Warning, "", "80 bytes of 100 bytes",
		},
		"nobody": {func(p *Patient) { p.Survey.User = nil }, "rights", preflight.Unknown, "", "does not tell"},
		"a reader": {
			func(p *Patient) {
				p.Survey.User.Restricted, p.Survey.User.Publish.Deny = true, []string{"$KV.weir_registry.jobs.*.intent"}
			}, "rights", preflight.Error, fault.BusRights, "$KV.weir_registry.jobs.*.intent",
		},
		"may not list": {
			func(p *Patient) { p.Survey.Streams, p.Survey.Unlisted = nil, "denied" }, "streams", preflight.Unknown, "", "denied",
		},
		"clock": {func(p *Patient) { p.Survey.Clock.Ahead = -time.Minute }, "clock", preflight.Warning, "", "1m0s behind"},

		"deleted": {func(p *Patient) { p.with(data("WEIR_old_9", "old", "9")) }, "leftover_stream", preflight.Warning, "", "old is deleted"},
		"lost":    {func(p *Patient) { p.with(data("WEIR_lost_1", "lost", "1")) }, "leftover_stream", preflight.Warning, "", "no job lost"},
		"fenced":  {func(p *Patient) { p.with(data("WEIR_shop_2", "shop", "2")) }, "leftover_stream", preflight.Warning, "", "attempt 3 has taken its place"},
		"state":   {func(p *Patient) { p.Lives = map[string]int{"l1": 1, "l0": 2} }, "leftover_state", preflight.Warning, "", "2 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := well()
			tc.spoil(&p)
			var bad []preflight.Finding
			for _, f := range Examine(p) {
				if err := f.Validate(); err != nil || f.Group != Group {
					t.Errorf("%+v: %v", f, err)
				}
				if f.Status != preflight.OK {
					bad = append(bad, f)
				}
			}
			if tc.check == "" {
				if len(bad) > 0 {
					t.Errorf("%+v", bad)
				}
				return
			}
			if len(bad) != 1 {
				t.Fatalf("found %+v, want one of %s", bad, tc.check)
			}
			if f := bad[0]; f.Check != tc.check || f.Status != tc.status || f.Code != tc.code || !strings.Contains(f.Found, tc.found) {
				t.Errorf("found %+v; want %s of %s, code %q, %q", f, tc.status, tc.check, tc.code, tc.found)
			}
		})
	}
}

func TestNeedsAreSubjects(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, n := range needs() {
		if n.what == "" || seen[n.subject] || !strings.HasPrefix(n.subject, "$") {
			t.Errorf("%+v", n)
		}
		seen[n.subject] = true
	}
	for who, allow := range map[string][]string{
		"exactly what is needed": slices.Collect(maps.Keys(seen)),
		"the user of compose": {
			"$KV.weir_registry.jobs.*.intent", "$KV.weir_registry.jobs.*.spec.>", "$JS.API.INFO", "$JS.API.STREAM.LIST",
			"$JS.API.STREAM.INFO.*", "$JS.API.DIRECT.GET.>", "$JS.API.CONSUMER.CREATE.KV_weir_registry.*.>",
			"$JS.API.CONSUMER.CREATE.WEIR_EVENT.*.>", "$JS.API.CONSUMER.MSG.NEXT.*.*",
		},
	} {
		p := well()
		p.Survey.User.Restricted = true
		p.Survey.User.Publish.Allow = allow
		for _, f := range Examine(p) {
			if f.Check == "rights" && f.Status != preflight.OK {
				t.Errorf("%s: %+v", who, f)
			}
		}
	}
}

func TestParseMonitor(t *testing.T) {
	t.Parallel()
	m, err := ParseMonitor([]byte(`{"server_name":"n","jetstream":{"config":{"max_storage":7,"store_dir":"/d","sync_interval":120000000000,"sync_always":true}}}`))
	if err != nil || *m != (Monitor{SyncAlways: true, SyncInterval: 2 * time.Minute, StoreDir: "/d", MaxStore: 7}) {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{"", "<html>", `{"jetstream":{}}`} {
		if m, err := ParseMonitor([]byte(bad)); err == nil {
			t.Errorf("%q gives %+v", bad, m)
		}
	}
}
