package rows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// ErrMalformed is in the chain of every error of Decode: the bytes are not a batch that Encode wrote.
var ErrMalformed = errors.New("malformed batch")

// maxCachedSchemas bounds a decoder's memory; a job has far fewer live schema versions.
const maxCachedSchemas = 4096

// Decoder turns messages back into batches and remembers schemas by their encoded form, so that all batches of one
// schema version share one *Schema. The zero value is ready. It is owned by one goroutine.
type Decoder struct {
	schemas map[string]decodedSchema
}

type decodedSchema struct {
	schema *Schema
	layout layout
}

// Decode reads what Encode wrote. The batch shares memory with msg, which must not change as long as the batch is used.
// Any other input is an error that wraps ErrMalformed, never a panic or an allocation larger than msg.
func (d *Decoder) Decode(msg []byte) (*Batch, error) {
	b, err := d.decode(msg)
	if err != nil {
		return nil, fmt.Errorf("decode %d bytes: %w: %w", len(msg), ErrMalformed, err)
	}
	return b, nil
}

func (d *Decoder) decode(msg []byte) (*Batch, error) {
	schemaMeta, body, rest, err := cutMessage(msg, headerSchema)
	if err != nil {
		return nil, err
	}
	known, ok := d.schemas[string(schemaMeta)]
	if !ok {
		if len(body.bytes) != 0 {
			return nil, errors.New("schema message: has a body")
		}
		if err := boundSchema(body.header); err != nil {
			return nil, err
		}
		if known, err = readSchema(msg[:len(msg)-len(rest)]); err != nil {
			return nil, err
		}
		if d.schemas == nil || len(d.schemas) >= maxCachedSchemas {
			d.schemas = make(map[string]decodedSchema)
		}
		d.schemas[string(schemaMeta)] = known
	}
	_, body, rest, err = cutMessage(rest, headerRecordBatch)
	if err != nil {
		return nil, err
	}
	if string(rest) != endOfStream {
		return nil, errors.New("stream: more than one record batch, or no end")
	}
	return loadBatch(known, body)
}

func readSchema(head []byte) (decodedSchema, error) {
	// Arrow's reader turns its own panics on malformed metadata into errors.
	r, err := ipc.NewReader(bytes.NewReader(head))
	if err != nil {
		return decodedSchema{}, err
	}
	defer r.Release()
	s, l, err := schemaFromArrow(r.Schema())
	if err != nil {
		return decodedSchema{}, err
	}
	if r.Schema().NumFields() == s.NumColumns() {
		return decodedSchema{}, errors.New("schema message: no system columns")
	}
	return decodedSchema{schema: s, layout: l}, nil
}

// messageBody is a message's header table and the bytes it describes.
type messageBody struct {
	header flatTable
	bytes  []byte
}

// cutMessage takes one encapsulated message of the given header type off the front of b.
func cutMessage(b []byte, headerType byte) (meta []byte, body messageBody, rest []byte, err error) {
	if len(b) < 8 || binary.LittleEndian.Uint32(b) != 0xffffffff {
		return nil, body, nil, errors.New("stream: no message where one must begin")
	}
	size := int(binary.LittleEndian.Uint32(b[4:]))
	if size > len(b)-8 {
		return nil, body, nil, errors.New("stream: message metadata cut short")
	}
	meta, rest = b[8:8+size], b[8+size:]
	root, err := flatRoot(meta)
	if err != nil {
		return nil, body, nil, err
	}
	kind, err := root.byte(messageHeaderType)
	if err != nil {
		return nil, body, nil, err
	}
	if kind != headerType {
		return nil, body, nil, fmt.Errorf("stream: message type %d where %d must stand", kind, headerType)
	}
	header, ok, err := root.table(messageHeader)
	if err != nil || !ok {
		return nil, body, nil, errors.Join(err, errors.New("message: no header"))
	}
	n, err := root.int64(messageBodyLength)
	if err != nil {
		return nil, body, nil, err
	}
	if n < 0 || n > int64(len(rest)) {
		return nil, body, nil, errors.New("stream: message body cut short")
	}
	return meta, messageBody{header: header, bytes: rest[:n:n]}, rest[n:], nil
}

func loadBatch(known decodedSchema, body messageBody) (*Batch, error) {
	l, n, err := newLoader(body.header, body.bytes)
	if err != nil {
		return nil, err
	}
	s := known.schema
	fields := s.arrow[known.layout].Fields()
	arrays := make([]arrow.Array, len(fields))
	for i, f := range fields {
		data, err := l.load(f.Type, n)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		if i >= len(s.columns) && !f.Nullable && data.NullN() > 0 {
			return nil, fmt.Errorf("column %q: null", f.Name)
		}
		arrays[i] = array.MakeFromData(data)
	}
	if len(l.nodes) > 0 || len(l.buffers) > 0 {
		return nil, errors.New("record batch: more nodes or buffers than the schema has")
	}
	k := len(s.columns)
	b := &Batch{schema: s, n: n, columns: arrays[:k:k]}
	b.op, b.seq, b.ts = arrays[k].(*array.Uint8), arrays[k+1].(*array.Uint64), arrays[k+2].(*array.Timestamp)
	b.txn, b.xid, b.ord = arrays[k+3].(*array.Uint64), arrays[k+4].(*array.Uint32), arrays[k+5].(*array.Uint32)
	k += len(systemFields)
	if known.layout&withSpecial != 0 {
		b.special = arrays[k].(*array.List)
		k++
	}
	if known.layout&withAbsent != 0 {
		b.absent = arrays[k].(*array.List)
	}
	return b, b.check()
}

// check proves what the system columns say about the rows.
func (b *Batch) check() error {
	for i, o := range b.op.Uint8Values() {
		if !Op(o).Valid() {
			return fmt.Errorf("row %d: %v", i, Op(o))
		}
	}
	var refs []uint16
	if b.absent != nil {
		refs = append(refs, b.absent.ListValues().(*array.Uint16).Uint16Values()...)
	}
	if b.special != nil {
		pairs := b.special.ListValues().(*array.Struct)
		if pairs.NullN() > 0 || pairs.Field(0).NullN() > 0 || pairs.Field(1).NullN() > 0 {
			return errors.New("special value: null")
		}
		refs = append(refs, pairs.Field(0).(*array.Uint16).Uint16Values()...)
	}
	for _, c := range refs {
		if int(c) >= len(b.columns) {
			return fmt.Errorf("absent or special column %d of %d", c, len(b.columns))
		}
	}
	return nil
}
