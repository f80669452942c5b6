package stage

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
)

// Kind says what the committer does with the rows of a part. The numbers are stored and never change.
type Kind uint8

const (
	// Delete: the keys of these rows must not be in the target afterwards.
	Delete Kind = 1
	// Fresh: whole rows that were inserted within the epoch, so the target very likely has none with their keys.
	Fresh Kind = 2
	// Upsert: whole rows; the target may or may not have rows with their keys.
	Upsert Kind = 3
	// Partial: updates that lack columns, all of them the same ones.
	Partial Kind = 4
	// Change: images as the source sent them, in order.
	Change Kind = 5
	// Move: rows of a rows.MoveSchema, which take the columns they lack from the row under their old key.
	Move Kind = 6
)

// Part is some rows of a piece.
type Part struct {
	Kind Kind
	Rows *rows.Batch
}

// Desc describes a piece: the JSON in a manifest. Exactly one of Truncate, Inline and Object is set.
type Desc struct {
	Table rows.TableID `json:"table"`
	// Truncate marks the place of a truncate among the writer's pieces.
	Truncate bool `json:"truncate,omitempty"`
	// Version is the schema version of the rows.
	Version uint32        `json:"version,omitempty"`
	Inline  []byte        `json:"inline,omitempty"`
	Object  *epoch.Object `json:"object,omitempty"`
}

// ParseDesc reads what a writer described.
func ParseDesc(data json.RawMessage) (Desc, error) {
	var d Desc
	if err := json.Unmarshal(data, &d); err != nil {
		return Desc{}, fmt.Errorf("read description of a staged piece: %w", err)
	}
	if d.Table == "" || (!d.Truncate && d.Inline == nil && d.Object == nil) {
		return Desc{}, errors.New("read description of a staged piece: table or content missing")
	}
	return d, nil
}

// Codec compresses and reads pieces. It is owned by one goroutine.
type Codec struct {
	enc  *zstd.Encoder
	dec  *zstd.Decoder
	rows rows.Decoder
	raw  []byte
}

// NewCodec makes a codec that uses the calling goroutine only.
func NewCodec() (*Codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("make compressor: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
	if err != nil {
		return nil, fmt.Errorf("make decompressor: %w", err)
	}
	return &Codec{enc: enc, dec: dec}, nil
}

const (
	partHeader = 1 + 4 // kind, length
	schemaSize = 8 << 10
)

// Encode writes the parts of one piece: for each its kind, its length and an Arrow IPC stream, all compressed at once.
func (c *Codec) Encode(parts []Part) ([]byte, error) {
	size := int64(0)
	for _, p := range parts {
		size += SizeOf(p.Rows) + schemaSize
	}
	raw := slices.Grow(c.raw[:0], int(size+size/16))
	for _, p := range parts {
		at := len(raw)
		raw = append(raw, byte(p.Kind), 0, 0, 0, 0)
		var err error
		if raw, err = p.Rows.Encode(raw); err != nil {
			return nil, err
		}
		binary.LittleEndian.PutUint32(raw[at+1:], uint32(len(raw)-at-partHeader))
		raw = append(raw, make([]byte, padding(len(raw)-at-partHeader))...)
	}
	c.raw = raw
	return c.enc.EncodeAll(raw, make([]byte, 0, len(raw)/2)), nil
}

// Decode reads what Encode wrote. The batches own their memory.
func (c *Codec) Decode(data []byte) ([]Part, error) {
	// The buffer starts three bytes late, so that every stream in it starts on eight.
	raw, err := c.dec.DecodeAll(data, make([]byte, 8-partHeader)) // the frame says how much it needs
	if err != nil {
		return nil, fmt.Errorf("decompress a staged piece: %w", err)
	}
	raw = raw[8-partHeader:]
	var parts []Part
	for len(raw) > 0 {
		if len(raw) < partHeader {
			return nil, errors.New("read a staged piece: cut short")
		}
		n := int(binary.LittleEndian.Uint32(raw[1:]))
		if n > len(raw)-partHeader {
			return nil, errors.New("read a staged piece: cut short")
		}
		b, err := c.rows.Decode(raw[partHeader : partHeader+n])
		if err != nil {
			return nil, fmt.Errorf("read a staged piece: %w", err)
		}
		parts = append(parts, Part{Kind: Kind(raw[0]), Rows: b})
		raw = raw[min(partHeader+n+padding(n), len(raw)):]
	}
	return parts, nil
}

// padding follows a stream of n bytes, so that the next part starts on eight: a batch shares memory with its message, and
// Arrow wants that aligned.
func padding(n int) int { return (8 - (partHeader+n)%8) % 8 }

// Open reads a piece back. A piece that the store lost is permanent: only the source has its rows now.
func (d Desc) Open(ctx context.Context, store sink.Store, c *Codec) ([]Part, error) {
	data := d.Inline
	if d.Object != nil {
		var err error
		if data, err = store.Get(ctx, *d.Object); err != nil {
			return nil, fmt.Errorf("read staged piece %s: %w", d.Object.Subject, err)
		}
	}
	parts, err := c.Decode(data)
	if err != nil {
		return nil, fault.Wrap(err, fault.SinkStageLost, "table "+string(d.Table), err.Error())
	}
	return parts, nil
}
