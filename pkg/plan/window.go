package plan

import (
	"fmt"

	"weir.dev/weir/pkg/fault"
)

// Bounds of what a job may have under way on the bus. The window holds what is stored but not consumed, the flight what
// is sent but not stored.
const (
	maxJobWindow     = 128 << 20
	maxJobFlight     = 64 << 20
	maxChannelWindow = 4 << 20
	maxWindowMsgs    = 64
	minBatch         = 32 << 10
	maxBatch         = 256 << 10
	batchesPerWindow = 8
)

// WindowFor gives every channel of the plan the same window (I14): at most 4 MiB and 64 messages, less when the job has
// so many channels that together they would exceed 128 MiB. A plan whose windows would fall below eight of the smallest
// batches is refused: its barriers would wait behind single messages.
func WindowFor(p *Partitioned) (Window, error) {
	channels, senders := 0, 0
	sends := make(map[VertexID]bool)
	for _, e := range p.Edges {
		channels += len(p.Channels(e))
		sends[e.From] = true
	}
	for _, v := range p.Vertices {
		if sends[v.ID] {
			senders += v.Parallelism
		}
	}
	w := Window{Bytes: min(maxChannelWindow, maxJobWindow/int64(max(channels, 1))), Messages: maxWindowMsgs}
	if w.Bytes < minBatch*batchesPerWindow {
		limit := maxJobWindow / (minBatch * batchesPerWindow)
		return Window{}, fault.New(fault.SpecUnsupported, "sinks", fmt.Sprintf(
			"readers and writers make %d channels, a job can have %d", channels, limit))
	}
	w.Batch = min(w.Bytes/batchesPerWindow, maxBatch)
	w.InFlight = max(maxJobFlight/int64(max(senders, 1)), w.Batch)
	return w, nil
}
