package files

import (
	"bufio"
	"io"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// lines writes one JSON object in a line: the change with its columns under "row", or in append mode the columns alone.
type lines struct {
	w    *bufio.Writer
	mode spec.Mode
	line []byte
}

func newLines(w io.Writer, mode spec.Mode) *lines {
	return &lines{w: bufio.NewWriterSize(w, 64<<10), mode: mode}
}

func (l *lines) write(b *rows.Batch) error {
	for i := range b.NumRows() {
		if l.mode == spec.Append {
			l.line = b.AppendColumnsJSON(l.line[:0], i)
		} else {
			l.line = b.AppendRowJSON(l.line[:0], i)
		}
		l.line = append(l.line, '\n')
		if _, err := l.w.Write(l.line); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) close() error { return l.w.Flush() }
