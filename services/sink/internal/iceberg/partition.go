package iceberg

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// specFor is the partition of a new changelog.
func specFor(parts []spec.PartitionOf, s *rows.Schema, sc *iceberg.Schema, where string) (*iceberg.PartitionSpec, error) {
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
	at    int // in the layout's data form
	typ   iceberg.Type
}

func (l *layout) partition() ([]part, error) {
	var parts []part
	for _, f := range l.spec.Fields() {
		at := -1
		for i, id := range l.data.ids {
			if id == f.SourceID() {
				at = i
			}
		}
		if at < 0 {
			return nil, fmt.Errorf("partition field %s: its column is not written", f.Name)
		}
		parts = append(parts, part{f, at, l.data.schema.Field(at).Type})
	}
	return parts, nil
}

// group is rows of one partition.
type group struct {
	values map[int]any
	rows   []int32
}

// groups divides the rows of a record by partition, in the order of their first rows.
func (l *layout) groups(rec arrow.RecordBatch) ([]*group, error) {
	var all []*group
	known := make(map[string]*group)
	var key strings.Builder
	for i := range int(rec.NumRows()) {
		key.Reset()
		values := make(map[int]any, len(l.parts))
		for _, p := range l.parts {
			v, err := p.value(rec.Column(p.at), i)
			if err != nil {
				return nil, err
			}
			if v.Valid {
				values[p.field.FieldID] = v.Val.Any()
			} else {
				values[p.field.FieldID] = nil
			}
			fmt.Fprintf(&key, "%v;", values[p.field.FieldID])
		}
		g := known[key.String()]
		if g == nil {
			g = &group{values: values}
			known[key.String()] = g
			all = append(all, g)
		}
		g.rows = append(g.rows, int32(i))
	}
	return all, nil
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
