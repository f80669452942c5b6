package scan

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
)

// Formats of a result's column in the protocol.
const (
	FormatText   int16 = 0
	FormatBinary int16 = 1
)

// Plan is how the rows of a table are asked for and put into a builder. It is bound to the builder and, like it, owned by
// one goroutine.
type Plan struct {
	builder  *rows.Builder
	list     string
	formats  []int16
	decoders []pgcodec.Decoder
}

// Bind plans the columns of b's schema; codecs has one per column, in order.
func Bind(b *rows.Builder, codecs []pgcodec.Codec) (*Plan, error) {
	s := b.Schema()
	if len(codecs) != s.NumColumns() {
		return nil, fmt.Errorf("plan the scan of %s: %d codecs for %d columns", s.Table(), len(codecs), s.NumColumns())
	}
	p := &Plan{builder: b, formats: make([]int16, len(codecs)), decoders: make([]pgcodec.Decoder, len(codecs))}
	names := make([]string, len(codecs))
	for i, c := range codecs {
		form := pgcodec.Text
		if c.HasBinary() {
			form, p.formats[i] = pgcodec.Binary, FormatBinary
		}
		var err error
		if p.decoders[i], err = c.Decoder(b, i, form); err != nil {
			return nil, fmt.Errorf("plan the scan of %s: %w", s.Table(), err)
		}
		names[i] = pgx.Identifier{s.Column(i).Name}.Sanitize()
	}
	p.list = strings.Join(names, ", ")
	return p, nil
}

// List is the columns of the table, quoted, as a SELECT names them.
func (p *Plan) List() string { return p.list }

// Formats are the forms to ask for, one per column of List, for Query. Columns that a statement selects besides come
// after them. The caller may append to the slice.
func (p *Plan) Formats() []int16 { return append([]int16(nil), p.formats...) }

// Put sets every column of the builder's current row; cells are those of List, in Formats, further ones are ignored. The
// caller ends the row. After an error the builder is in the middle of a row and of no further use.
func (p *Plan) Put(cells [][]byte) error {
	if len(cells) < len(p.decoders) {
		return fmt.Errorf("row of %s: %d cells for %d columns", p.builder.Schema().Table(), len(cells), len(p.decoders))
	}
	for i, put := range p.decoders {
		if cells[i] == nil {
			p.builder.Null(i)
			continue
		}
		if err := put(cells[i]); err != nil {
			return fmt.Errorf("table %s, column %q: %w", p.builder.Schema().Table(), p.builder.Schema().Column(i).Name, err)
		}
	}
	return nil
}
