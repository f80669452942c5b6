package bus_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

func TestNames(t *testing.T) {
	t.Parallel()
	out, db := plan.SubtaskID{Vertex: "out", Index: 1}, plan.SubtaskID{Vertex: "db_enum", Index: 0}
	for got, want := range map[string]string{
		bus.DataStream("shop", 17):                          "WEIR_shop_17",
		bus.DataSubject("shop", 17, out, db):                "weir.data.shop.17.out-1.db_enum-0",
		bus.DataFilter("shop", 17, out):                     "weir.data.shop.17.out-1.*",
		bus.AckSubject("shop", 17, "ready", out):            "weir.ack.shop.17.ready.out-1",
		bus.AckFilter("*"):                                  "weir.ack.>",
		bus.ReportSubject("Host.local"):                     "weir.report.Host=2Elocal",
		bus.EventSubject("shop", "recovery"):                "weir.event.shop.recovery",
		bus.EdgeStream("shop", "tills"):                     "WEIR_EDGE_shop_tills",
		bus.EdgeSubject("shop", "tills", "c1"):              "weir.edge.shop.tills.c1",
		bus.DLQStream("shop"):                               "WEIR_DLQ_shop",
		bus.DLQSubject("shop", "wh", "public.orders", 9, 3): "weir.dlq.shop.wh.public=2Eorders.9.3",
		bus.StateSubject("l1", 17, 9, out, 2):               "weir.state.l1.17.9.out-1.2",
		bus.HeadKey("shop"):                                 "jobs.shop.head",
		bus.PlanKey("shop", 17, 4):                          "jobs.shop.plan.17.4",
		bus.EpochKey("shop", 9, 4):                          "jobs.shop.epoch.9.4",
		bus.EscapeToken("before upgrade"):                   "before=20upgrade",
		bus.NodeKey("sink-1"):                               "nodes.sink-1",
		bus.ProgressReaderKey("shop", "db", 0):              "shop.db.reader.0",
		bus.ProgressEnumeratorKey("shop", "db"):             "shop.db.enumerator",
		bus.EscapeToken("Größe"):                            "Gr=C3=B6=C3=9Fe",
		bus.EscapeToken(""):                                 "=",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestParseDataStream(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"WEIR_shop_17": "shop 17", "WEIR_a_1_2": "a_1 2", "WEIR_a=2Eb_1": "a.b 1",
		"WEIR_ACK": "", "WEIR_STATE": "", "WEIR_shop_": "", "WEIR__1": "", "WEIR_shop_01": "", "WEIR_shop_0": "",
		"WEIR_EDGE_shop_tills": "", "WEIR_DLQ_shop": "", "KV_weir_leases": "", "weir_shop_1": "", "WEIR_a=2eb_1": "",
	} {
		job, f, ok := bus.ParseDataStream(name)
		got := ""
		if ok {
			got = job + " " + f.String()
		}
		if got != want {
			t.Errorf("ParseDataStream(%q) = %q, want %q", name, got, want)
		}
	}
}

var (
	tokenForm = regexp.MustCompile(`^[A-Za-z0-9_=-]+$`)
	subtasks  = rapid.Custom(func(t *rapid.T) plan.SubtaskID {
		return plan.SubtaskID{
			Vertex: plan.VertexID(rapid.StringN(1, 8, -1).Draw(t, "vertex")), Index: rapid.IntRange(0, 999).Draw(t, "index"),
		}
	})
	fences = rapid.Custom(func(t *rapid.T) fence.Token { return fence.Token(rapid.Uint64Min(1).Draw(t, "fence")) })
)

// Any name gives one token, and different names give different tokens: the way back is exact.
func TestEscapeTokenIsReversible(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		token := bus.EscapeToken(want)
		got, err := bus.UnescapeToken(token)
		if err != nil || got != want || !tokenForm.MatchString(token) {
			t.Fatalf("%q became %q and then %q, %v", want, token, got, err)
		}
	})
}

func FuzzUnescapeToken(f *testing.F) {
	for _, s := range []string{"", "=", "a=2Eb", "a=2eb", "a=", "=4", "=41", "a.b", "=ZZ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if s, err := bus.UnescapeToken(token); err == nil && bus.EscapeToken(s) != token {
			t.Fatalf("%q and %q are two spellings of %q", token, bus.EscapeToken(s), s)
		}
	})
}

func TestSubjectsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		job, life := rapid.StringN(1, 12, -1).Draw(t, "job"), rapid.StringN(1, 12, -1).Draw(t, "life")
		f, a, b := fences.Draw(t, "f"), subtasks.Draw(t, "a"), subtasks.Draw(t, "b")
		e, n := epoch.ID(rapid.Uint64Min(1).Draw(t, "epoch")), rapid.IntRange(0, 99).Draw(t, "n")

		gotJob, gotFence, ok := bus.ParseDataStream(bus.DataStream(job, f))
		if !ok || gotJob != job || gotFence != f {
			t.Fatalf("data stream: %q %d %t", gotJob, gotFence, ok)
		}
		gotJob, gotFence, dst, src, err := bus.ParseDataSubject(bus.DataSubject(job, f, a, b))
		if err != nil || gotJob != job || gotFence != f || dst != a || src != b {
			t.Fatalf("data subject: %q %d %s %s %v", gotJob, gotFence, dst, src, err)
		}
		gotJob, gotFence, kind, sub, err := bus.ParseAckSubject(bus.AckSubject(job, f, "ready", a))
		if err != nil || gotJob != job || gotFence != f || kind != "ready" || sub != a {
			t.Fatalf("fact subject: %q %d %s %s %v", gotJob, gotFence, kind, sub, err)
		}
		s := bus.StateSubject(life, f, e, a, n)
		gotLife, gotFence, gotEpoch, sub, gotN, err := bus.ParseStateSubject(s)
		if err != nil || gotLife != life || gotFence != f || gotEpoch != e || sub != a || gotN != n {
			t.Fatalf("state subject: %q %d %d %s %d %v", gotLife, gotFence, gotEpoch, sub, gotN, err)
		}
		if !strings.HasPrefix(s, bus.StateEpochPrefix(life, f, e)+".") {
			t.Fatalf("%s is not under its epoch", s)
		}
	})
}
