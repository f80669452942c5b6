package epoch

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"weir.dev/weir/pkg/plan"
)

// Meter counts one end of one channel. Sender and receiver of a channel each have one and feed it every message; at a
// barrier both must hold the same [Tally].
//
// Counting is cumulative since the start of the attempt, so skipped epochs need no special case. A barrier is counted
// like any message, after its own cut was taken: the tally of epoch N does not contain barrier N.
type Meter struct {
	prefix []byte
	total  Tally
}

// NewMeter makes the meter of one end of a channel.
func NewMeter(c plan.Channel) *Meter {
	p := append([]byte(c.String()), 0)
	return &Meter{prefix: p}
}

// Digest identifies a message of the channel: the same number with another content gives another digest. body is the
// payload, or the claim check that stands for it.
func (m *Meter) Digest(seq uint64, kind, table string, body []byte) uint64 {
	var buf [256]byte
	b := append(buf[:0], m.prefix...)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = binary.AppendUvarint(b, uint64(len(kind)))
	b = append(b, kind...)
	b = binary.AppendUvarint(b, uint64(len(table)))
	b = append(b, table...)
	return xxh3.HashSeed(body, xxh3.Hash(b))
}

// Count adds a message by its digest.
func (m *Meter) Count(digest uint64, rows int) {
	m.total.Messages++
	m.total.Rows += uint64(rows)
	m.total.Hash += digest
}

// Total is the tally of everything counted so far.
func (m *Meter) Total() Tally { return m.total }

// Since is the difference to an earlier tally of the same end of the same channel; the hash wraps as its sum does.
func (t Tally) Since(earlier Tally) Tally {
	return Tally{
		Messages: t.Messages - earlier.Messages,
		Rows:     t.Rows - earlier.Rows,
		Hash:     t.Hash - earlier.Hash,
	}
}
