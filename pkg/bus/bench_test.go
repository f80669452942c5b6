package bus_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
)

const benchSize = 128 << 10

// BenchmarkChannel moves 128 KiB messages through Publisher and Receiver, acknowledged one by one.
func BenchmarkChannel(b *testing.B) {
	_, c := mesh(b)
	createData(b, c, "shop", 1)
	r := receiver(b, c, writer)
	p := publisher(b, c, bus.PublisherConfig{MaxInFlight: 64, MaxInFlightBytes: 4 << 20})
	subject, data := bus.DataSubject("shop", 1, writer, reader), make([]byte, benchSize)
	h := bus.Header{"Weir-V": {"1"}, "Weir-Kind": {"rows"}, "Weir-Fence": {"1"}, "Weir-Epoch": {"1"}, "Weir-Seq": {"1"}}
	received := make(chan error, 1)
	b.SetBytes(benchSize)
	b.ResetTimer()
	go func() {
		for range b.N {
			d, err := r.Next(b.Context())
			if err != nil {
				received <- err
				return
			}
			d.Ack()
		}
		received <- nil
	}()
	for range b.N {
		if _, err := p.Publish(b.Context(), subject, h, data); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-received; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRawJetStream is the same with the client library alone: asynchronous publishes, Messages with a byte limit.
func BenchmarkRawJetStream(b *testing.B) {
	s := meshtest.StartServer(b, meshtest.ServerOptions{})
	c := connect(b, s)
	createData(b, c, "shop", 1)
	open := func() jetstream.JetStream {
		nc, err := nats.Connect("", nats.InProcessServer(s))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(nc.Close)
		js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(64))
		if err != nil {
			b.Fatal(err)
		}
		return js
	}
	out, in := open(), open()
	cons, err := in.CreateConsumer(b.Context(), bus.DataStream("shop", 1), jetstream.ConsumerConfig{
		Durable: "r", MaxAckPending: -1, MemoryStorage: true, FilterSubject: bus.DataFilter("shop", 1, writer),
	})
	if err != nil {
		b.Fatal(err)
	}
	it, err := cons.Messages(jetstream.PullMaxMessagesWithBytesLimit(1024, 8<<20))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(it.Stop)
	subject, data := bus.DataSubject("shop", 1, writer, reader), make([]byte, benchSize)
	h := nats.Header{"Weir-V": {"1"}, "Weir-Kind": {"rows"}, "Weir-Fence": {"1"}, "Weir-Epoch": {"1"}, "Weir-Seq": {"1"}}
	received := make(chan error, 1)
	b.SetBytes(benchSize)
	b.ResetTimer()
	go func() {
		for range b.N {
			m, err := it.Next()
			if err == nil {
				err = m.Ack()
			}
			if err != nil {
				received <- err
				return
			}
		}
		received <- nil
	}()
	for range b.N {
		if _, err := out.PublishMsgAsync(&nats.Msg{Subject: subject, Header: h, Data: data}, jetstream.WithStallWait(5e9)); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-received; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAppender stores messages of 500 bytes in atomic batches, as sinks publish events.
func BenchmarkAppender(b *testing.B) {
	s := meshtest.StartServer(b, meshtest.ServerOptions{SyncAlways: true})
	o, err := connect(b, s).OpenOutlet(b.Context(), bus.OutletConfig{Stream: "EVENTS", Prefix: "events", Create: true})
	if err != nil {
		b.Fatal(err)
	}
	a, err := o.Append(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 500)
	h := bus.Header{"Weir-Job": {"shop"}, "Weir-Fence": {"1"}, "Weir-Epoch": {"1"}, "Weir-Index": {"1"}, "Weir-Seq": {"1"}, "Content-Type": {"application/json"}}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := a.Put(b.Context(), "events.shop.goods", h, data); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := a.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
