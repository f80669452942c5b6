package cdcmysql

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/mycodec"
)

// changes are the last changes of keys: a row in the log's form, or nil where the row was deleted.
type changes struct {
	last  map[string][][]byte
	order []string
	keys  map[string]cdc.Key
}

// changed collects the changes of the plan's table.
func (p *scanPlan) changed(steps []step, where string) (*changes, error) {
	c := &changes{last: make(map[string][][]byte), keys: make(map[string]cdc.Key)}
	put := func(d *described, row [][]byte, gone bool) error {
		key, err := d.keyOf(nil, row, mycodec.Log)
		if err != nil {
			return fault.Wrap(err, fault.MYDecode, where, err.Error())
		}
		name := keyName(key)
		if _, ok := c.last[name]; !ok {
			c.order, c.keys[name] = append(c.order, name), key
		}
		c.last[name] = nil
		if !gone {
			c.last[name] = slices.Clone(row)
		}
		return nil
	}
	for _, s := range steps {
		if s.kind != stepRows {
			continue
		}
		if err := cmp.Or(s.err, s.table.err); err != nil {
			return nil, err
		}
		if !slices.Equal(s.table.columns, p.columns) {
			return nil, columnsChanged(where, p.captured)
		}
		row := make([][]byte, len(p.columns))
		for at, image := 0, s.image; len(image) > 0; at++ {
			var ok bool
			if image, ok = s.table.cells(image, row); !ok {
				return nil, fault.New(fault.MYDecode, where, fmt.Sprintf("table %s: a row that is not as long as its cells", p.name))
			}
			if err := put(s.table, row, s.change == deleted || (s.change == updated && at%2 == 0)); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func keyName(key cdc.Key) string {
	var b []byte
	for _, cell := range key {
		b = append(binary.AppendUvarint(b, uint64(len(cell))), cell...)
	}
	return string(b)
}

// merge puts the changed rows into the chunk that their keys belong to.
func (c *copier) merge(ctx context.Context, got *copied, changed *changes) error {
	var names []string
	var keys []cdc.Key
	for _, name := range changed.order {
		if changed.last[name] != nil {
			names, keys = append(names, name), append(keys, changed.keys[name])
		}
	}
	if len(keys) == 0 {
		return nil
	}
	low, high := got.Low, got.High
	if got.cut != nil {
		high = got.cut
	}
	inside, err := c.inside(ctx, got.plan, keys, low, high)
	if err != nil {
		return err
	}
	for i, in := range inside {
		if in {
			got.later = append(got.later, changed.last[names[i]])
		}
	}
	return nil
}

// inside says which keys lie in a range.
func (c *copier) inside(ctx context.Context, p *scanPlan, keys []cdc.Key, low, high cdc.Key) ([]bool, error) {
	in := make([]bool, len(keys))
	if !p.captured.Collated {
		order := cdc.Bytewise{}
		for i, k := range keys {
			in[i] = (low == nil || order.Compare(low, k) <= 0) && (high == nil || order.Compare(k, high) < 0)
		}
		return in, nil
	}
	var bounds []cdc.Key
	want := 0
	if low != nil {
		bounds, want = append(bounds, low), 1
	}
	if high != nil {
		bounds = append(bounds, high)
	}
	session, err := c.sql.open(ctx)
	if err != nil {
		return nil, err
	}
	places, err := p.locate(ctx, session, bounds, keys)
	for i, at := range places {
		in[i] = at == want
	}
	return in, err
}
