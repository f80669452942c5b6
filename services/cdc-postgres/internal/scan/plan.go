package scan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
)

// errTorn is a tuple that ends before its cells do.
var errTorn = errors.New("a tuple ends early")

// Plan is how the rows of a table are asked for and put into a builder. It is bound to the builder and, like it, owned by
// one goroutine.
type Plan struct {
	builder  *rows.Builder
	list     string
	forms    []pgcodec.Format
	decoders []pgcodec.Decoder
}

// Bind plans the columns of b's schema; codecs has one per column, in order.
func Bind(b *rows.Builder, codecs []pgcodec.Codec) (*Plan, error) {
	s := b.Schema()
	if len(codecs) != s.NumColumns() {
		return nil, fmt.Errorf("plan the scan of %s: %d codecs for %d columns", s.Table(), len(codecs), s.NumColumns())
	}
	p := &Plan{builder: b, forms: make([]pgcodec.Format, len(codecs)), decoders: make([]pgcodec.Decoder, len(codecs))}
	list := make([]string, len(codecs))
	for i, c := range codecs {
		p.forms[i], list[i] = pgcodec.Binary, pgx.Identifier{s.Column(i).Name}.Sanitize()
		if !c.HasBinary() {
			// A cast is not always what the output function writes: inet gets a netmask, boolean a word.
			p.forms[i], list[i] = pgcodec.Text, fmt.Sprintf("CASE WHEN %[1]s IS DISTINCT FROM NULL THEN concat(%[1]s) END", list[i])
		}
		var err error
		if p.decoders[i], err = c.Decoder(b, i, p.forms[i]); err != nil {
			return nil, fmt.Errorf("plan the scan of %s: %w", s.Table(), err)
		}
	}
	p.list = strings.Join(list, ", ")
	return p, nil
}

// List is what a SELECT names of the table, so that Put can take its rows.
func (p *Plan) List() string { return p.list }

// Form is the form of column i in a tuple.
func (p *Plan) Form(i int) pgcodec.Format { return p.forms[i] }

// Put sets every column of the builder's current row from the tuple that data begins with, and returns what is behind it.
// The caller ends the row. After an error the builder is in the middle of a row and of no further use.
func (p *Plan) Put(data []byte) (rest []byte, err error) {
	if len(data) < 2 {
		return nil, fmt.Errorf("row of %s: %w", p.builder.Schema().Table(), errTorn)
	}
	if n := int(binary.BigEndian.Uint16(data)); n != len(p.decoders) {
		return nil, fmt.Errorf("row of %s: %d cells for %d columns", p.builder.Schema().Table(), n, len(p.decoders))
	}
	data = data[2:]
	for i, put := range p.decoders {
		if len(data) < 4 {
			return nil, fmt.Errorf("row of %s: %w", p.builder.Schema().Table(), errTorn)
		}
		n := int(int32(binary.BigEndian.Uint32(data)))
		data = data[4:]
		if n < 0 {
			p.builder.Null(i)
			continue
		}
		if n > len(data) {
			return nil, fmt.Errorf("row of %s: %w", p.builder.Schema().Table(), errTorn)
		}
		if err := put(data[:n:n]); err != nil {
			return nil, fmt.Errorf("table %s, column %q: %w", p.builder.Schema().Table(), p.builder.Schema().Column(i).Name, err)
		}
		data = data[n:]
	}
	return data, nil
}
