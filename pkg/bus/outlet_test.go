package bus

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestOutletUnfit(t *testing.T) {
	t.Parallel()
	for why, spoil := range map[string]func(sc *jetstream.StreamConfig){
		"":                     func(*jetstream.StreamConfig) {},
		"subjects are":         func(sc *jetstream.StreamConfig) { sc.Subjects = []string{"cdc.>", "more"} },
		"must be \"cdc.>\"":    func(sc *jetstream.StreamConfig) { sc.Subjects = []string{"cdc.shop.>"} },
		"mirror":               func(sc *jetstream.StreamConfig) { sc.Mirror, sc.Subjects = &jetstream.StreamSource{Name: "x"}, nil },
		"sources":              func(sc *jetstream.StreamConfig) { sc.Sources = []*jetstream.StreamSource{{Name: "x"}} },
		"changes subjects":     func(sc *jetstream.StreamConfig) { sc.SubjectTransform = &jetstream.SubjectTransformConfig{} },
		"retention":            func(sc *jetstream.StreamConfig) { sc.Retention = jetstream.WorkQueuePolicy },
		"in memory":            func(sc *jetstream.StreamConfig) { sc.Storage = jetstream.MemoryStorage },
		"async":                func(sc *jetstream.StreamConfig) { sc.PersistMode = jetstream.AsyncPersistMode },
		"atomic":               func(sc *jetstream.StreamConfig) { sc.AllowAtomicPublish = false },
		"no_ack":               func(sc *jetstream.StreamConfig) { sc.NoAck = true },
		"sealed":               func(sc *jetstream.StreamConfig) { sc.Sealed = true },
		"max_msgs_per_subject": func(sc *jetstream.StreamConfig) { sc.MaxMsgsPerSubject = 1 },
		"max_age":              func(sc *jetstream.StreamConfig) { sc.MaxAge = time.Hour },
		"max_bytes":            func(sc *jetstream.StreamConfig) { sc.MaxBytes = 1 << 20 },
		"max_msgs 100":         func(sc *jetstream.StreamConfig) { sc.MaxMsgs = 100 },
	} {
		sc := &jetstream.StreamConfig{Subjects: []string{"cdc.>"}, AllowAtomicPublish: true, MaxMsgSize: 1000}
		spoil(sc)
		unfit := strings.Join(outletUnfit(sc, "cdc"), "; ")
		if (why == "") != (unfit == "") || !strings.Contains(unfit, why) {
			t.Errorf("want %q, have %q", why, unfit)
		}
	}
	full := &jetstream.StreamConfig{
		Subjects: []string{"cdc.>"}, AllowAtomicPublish: true, MaxBytes: 100, Discard: jetstream.DiscardNew,
		MaxAge: time.Hour, AllowMsgTTL: true,
	}
	if unfit := outletUnfit(full, "cdc"); unfit != nil {
		t.Errorf("a stream that refuses what is new: %q", unfit)
	}
}
