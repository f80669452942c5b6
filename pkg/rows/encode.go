package rows

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// endOfStream closes an Arrow IPC stream: a continuation mark and length zero.
const endOfStream = "\xff\xff\xff\xff\x00\x00\x00\x00"

// Encode appends the batch to dst as one complete Arrow IPC stream: schema, one record batch, end of stream.
// The schema part was encoded once, with the schema. Equal batches give equal bytes.
func (b *Batch) Encode(dst []byte) ([]byte, error) {
	payload, err := ipc.GetRecordBatchPayload(b.Arrow())
	if err != nil {
		return dst, fmt.Errorf("encode batch of %s: %w", b.schema.table, err)
	}
	defer payload.Release()
	w := appendWriter{buf: append(dst, b.schema.head[b.layout()]...)}
	if _, err := payload.WritePayload(&w); err != nil {
		return dst, fmt.Errorf("encode batch of %s: %w", b.schema.table, err)
	}
	return append(w.buf, endOfStream...), nil
}

// appendWriter is an io.Writer over a slice the caller owns, which bytes.Buffer would not give back grown.
type appendWriter struct{ buf []byte }

func (w *appendWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}
