package iceberg

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"weir.dev/weir/pkg/rows"
)

// maxDecimal is the precision of Iceberg's widest decimal; wider numbers are text.
const maxDecimal = 38

// typeOf is the type of a new column for values of a logical type. id gives a list's element its field id.
func typeOf(t rows.Type, id func() int) iceberg.Type {
	switch t.Kind {
	case rows.KindBool:
		return iceberg.PrimitiveTypes.Bool
	case rows.KindInt8, rows.KindInt16, rows.KindInt32, rows.KindUint8, rows.KindUint16:
		return iceberg.PrimitiveTypes.Int32
	case rows.KindInt64, rows.KindUint32, rows.KindDuration:
		return iceberg.PrimitiveTypes.Int64
	case rows.KindUint64:
		return iceberg.DecimalTypeOf(20, 0)
	case rows.KindFloat32:
		return iceberg.PrimitiveTypes.Float32
	case rows.KindFloat64:
		return iceberg.PrimitiveTypes.Float64
	case rows.KindDecimal:
		if t.Precision <= maxDecimal {
			return iceberg.DecimalTypeOf(int(t.Precision), int(t.Scale))
		}
	case rows.KindBytes:
		return iceberg.PrimitiveTypes.Binary
	case rows.KindDate:
		return iceberg.PrimitiveTypes.Date
	case rows.KindTime:
		return iceberg.PrimitiveTypes.Time
	case rows.KindTimestamp:
		return iceberg.PrimitiveTypes.Timestamp
	case rows.KindTimestampTZ:
		return iceberg.PrimitiveTypes.TimestampTz
	case rows.KindUUID:
		return iceberg.PrimitiveTypes.UUID
	case rows.KindList:
		return &iceberg.ListType{ElementID: id(), Element: typeOf(t.ElemType(), id)}
	case rows.KindText, rows.KindJSON, rows.KindDecimalText:
	}
	return iceberg.PrimitiveTypes.String
}

// textOf is a type without field ids, for comparison and for people.
func textOf(t iceberg.Type) string {
	if l, ok := t.(*iceberg.ListType); ok {
		return "list<" + textOf(l.Element) + ">"
	}
	return t.String()
}

func textOfKind(t rows.Type) string { return textOf(typeOf(t, func() int { return 0 })) }

// holds reports whether a column of type have takes every value of type want without a change of the value.
func holds(have, want iceberg.Type) bool {
	if textOf(have) == textOf(want) {
		return true
	}
	switch h := have.(type) {
	case iceberg.Int64Type:
		_, ok := want.(iceberg.Int32Type)
		return ok
	case iceberg.Float64Type:
		_, ok := want.(iceberg.Float32Type)
		return ok
	case iceberg.DecimalType:
		switch w := want.(type) {
		case iceberg.DecimalType:
			return h.Precision()-h.Scale() >= w.Precision()-w.Scale() && h.Scale() >= w.Scale()
		case iceberg.Int32Type:
			return h.Precision()-h.Scale() >= 10
		case iceberg.Int64Type:
			return h.Precision()-h.Scale() >= 19
		}
	case iceberg.StringType:
		_, list := want.(*iceberg.ListType)
		return !list
	}
	return false
}

// promotes reports whether Iceberg lets a column change its type: files written so far stay as they are.
func promotes(from, to iceberg.Type) bool {
	switch f := from.(type) {
	case iceberg.Int32Type:
		_, ok := to.(iceberg.Int64Type)
		return ok
	case iceberg.Float32Type:
		_, ok := to.(iceberg.Float64Type)
		return ok
	case iceberg.DecimalType:
		t, ok := to.(iceberg.DecimalType)
		return ok && t.Scale() == f.Scale() && t.Precision() > f.Precision()
	}
	return false
}

// stored is a column of a batch as an array of the type that a file has for it. An error means that a value does not fit.
func stored(ctx context.Context, col arrow.Array, t rows.Type, to arrow.DataType) (arrow.Array, error) {
	if ext, ok := to.(arrow.ExtensionType); ok {
		inner, err := stored(ctx, col, t, ext.StorageType())
		if err != nil {
			return nil, err
		}
		return array.NewExtensionArrayWithStorage(ext, inner), nil
	}
	switch {
	case t.Kind == rows.KindList:
		return storedList(ctx, col.(*array.List), t, to)
	case t.Kind == rows.KindDuration && to.ID() == arrow.INT64:
		return relabel(col, to), nil
	case to.ID() == arrow.STRING && col.DataType().ID() != arrow.STRING:
		return texts(col, rows.CodecFor(t)), nil
	case arrow.TypeEqual(col.DataType(), to):
		return col, nil
	}
	return compute.CastArray(ctx, col, compute.SafeCastOptions(to))
}

func storedList(ctx context.Context, l *array.List, t rows.Type, to arrow.DataType) (arrow.Array, error) {
	lt, ok := to.(*arrow.ListType)
	if !ok {
		return nil, fmt.Errorf("a list does not fit into %s", to)
	}
	elems, err := stored(ctx, l.ListValues(), t.ElemType(), lt.Elem())
	if err != nil {
		return nil, err
	}
	d := l.Data()
	data := array.NewData(lt, d.Len(), d.Buffers(), []arrow.ArrayData{elems.Data()}, d.NullN(), d.Offset())
	return array.MakeFromData(data), nil
}

// relabel gives the same bytes another type of the same width.
func relabel(col arrow.Array, to arrow.DataType) arrow.Array {
	d := col.Data()
	return array.MakeFromData(array.NewData(to, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset()))
}

func texts(col arrow.Array, c rows.Codec) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	var text []byte
	for i := range col.Len() {
		if col.IsNull(i) {
			b.AppendNull()
			continue
		}
		text = c.AppendText(text[:0], col, i)
		b.BinaryBuilder.Append(text)
	}
	return b.NewArray()
}
