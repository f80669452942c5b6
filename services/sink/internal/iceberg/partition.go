package iceberg

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// specFor is the partition of a new table.
func specFor(parts []spec.PartitionOf, s *rows.Schema, sc *iceberg.Schema, where string) (*iceberg.PartitionSpec, error) {
	if len(parts) == 0 {
		return iceberg.UnpartitionedSpec, nil
	}
	var fields []iceberg.PartitionField
	for _, p := range parts {
		f := iceberg.PartitionField{FieldID: 1000 + len(fields)}
		switch p.Time {
		case "hour":
			f.Transform = iceberg.HourTransform{}
		case "day":
			f.Transform = iceberg.DayTransform{}
		case "month":
			f.Transform = iceberg.MonthTransform{}
		default:
			if len(s.Key()) == 0 {
				return nil, fault.New(fault.SinkNoKey, where, "a partition by bucket needs a key, and the source declares none")
			}
			c := s.Column(s.Key()[0])
			source, _ := sc.FindFieldByName(c.Name)
			f.SourceIDs, f.Name, f.Transform = []int{source.ID}, c.Name+"_bucket", iceberg.BucketTransform{NumBuckets: p.Buckets}
			if !f.Transform.CanTransform(source.Type) {
				return nil, fault.New(fault.SinkUnsupportedType, where, "column "+c.Name+" is a "+textOf(source.Type)+", which has no buckets",
					"column", c.Name, "type", textOf(source.Type), "table", string(s.Table()))
			}
			fields = append(fields, f)
			continue
		}
		source, _ := sc.FindFieldByName(rows.ColTs)
		f.SourceIDs, f.Name = []int{source.ID}, rows.ColTs+"_"+p.Time
		fields = append(fields, f)
	}
	out := iceberg.NewPartitionSpec(fields...)
	return &out, nil
}

// part is one part of a table's partition, bound to the columns of files.
type part struct {
	field iceberg.PartitionField
	at    int // in the form
	typ   iceberg.Type
}

// pile is records of one partition.
type pile struct {
	values  map[int]any // by partition field
	records []arrow.RecordBatch
}

// piles divides records by partition, in the order of their first rows.
func (f form) piles(ctx context.Context, records []arrow.RecordBatch) ([]*pile, error) {
	var all []*pile
	known := make(map[string]*pile)
	for _, rec := range records {
		rows, err := f.groups(rec)
		if err != nil {
			return nil, err
		}
		for _, idx := range rows {
			values, err := f.partition(rec, int(idx[0]))
			if err != nil {
				return nil, err
			}
			key := fmt.Sprint(values)
			p := known[key]
			if p == nil {
				p = &pile{values: values}
				known[key] = p
				all = append(all, p)
			}
			taken, err := take(ctx, rec, idx)
			if err != nil {
				return nil, err
			}
			p.records = append(p.records, taken)
		}
	}
	return all, nil
}

// partition is that of a row.
func (f form) partition(rec arrow.RecordBatch, i int) (map[int]any, error) {
	values := make(map[int]any, len(f.parts))
	for _, p := range f.parts {
		v, err := p.value(rec.Column(p.at), i)
		if err != nil {
			return nil, err
		}
		values[p.field.FieldID] = nil
		if v.Valid {
			values[p.field.FieldID] = v.Val.Any()
		}
	}
	return values, nil
}

// groups divides the rows of a record by partition, in the order of their first rows.
func (f form) groups(rec arrow.RecordBatch) ([][]int32, error) {
	of := make([]int, rec.NumRows()) // the group of each row by the parts so far
	count := 1
	type refined struct {
		group int
		value any
	}
	for _, p := range f.parts {
		known := make(map[refined]int)
		for i, g := range of {
			v, err := p.value(rec.Column(p.at), i)
			if err != nil {
				return nil, err
			}
			r := refined{group: g}
			if v.Valid {
				r.value = v.Val.Any()
			}
			n, ok := known[r]
			if !ok {
				n = len(known)
				known[r] = n
			}
			of[i] = n
		}
		count = len(known)
	}
	groups := make([][]int32, count)
	for i, g := range of {
		groups[g] = append(groups[g], int32(i))
	}
	return groups, nil
}

func (p part) value(col arrow.Array, i int) (iceberg.Optional[iceberg.Literal], error) {
	if col.IsNull(i) {
		return iceberg.Optional[iceberg.Literal]{}, nil
	}
	var l iceberg.Literal
	switch a := col.(type) {
	case *array.Int32:
		l = iceberg.NewLiteral(a.Value(i))
	case *array.Int64:
		l = iceberg.NewLiteral(a.Value(i))
	case *array.String:
		l = iceberg.NewLiteral(a.Value(i))
	case *array.Binary:
		l = iceberg.NewLiteral(a.Value(i))
	case *array.Date32:
		l = iceberg.NewLiteral(iceberg.Date(a.Value(i)))
	case *array.Time64:
		l = iceberg.NewLiteral(iceberg.Time(a.Value(i)))
	case *array.Timestamp:
		l = iceberg.NewLiteral(iceberg.Timestamp(a.Value(i)))
	case *array.Decimal128:
		d, ok := p.typ.(iceberg.DecimalType)
		if !ok {
			return iceberg.Optional[iceberg.Literal]{}, fmt.Errorf("partition field %s: a decimal as %s", p.field.Name, p.typ)
		}
		l = iceberg.NewLiteral(iceberg.Decimal{Val: a.Value(i), Scale: d.Scale()})
	case array.ExtensionArray:
		b, ok := a.Storage().(*array.FixedSizeBinary)
		if !ok {
			return iceberg.Optional[iceberg.Literal]{}, fmt.Errorf("partition field %s: values of type %s", p.field.Name, col.DataType())
		}
		l = iceberg.NewLiteral(uuid.UUID(b.Value(i)))
	default:
		return iceberg.Optional[iceberg.Literal]{}, fmt.Errorf("partition field %s: values of type %s", p.field.Name, col.DataType())
	}
	return p.field.Transform.Apply(iceberg.Optional[iceberg.Literal]{Valid: true, Val: l}), nil
}
