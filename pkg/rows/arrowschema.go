package rows

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The system columns, after the table's own ones and found by place, not by name: a table may have a column _op.
const (
	ColOp      = "_op"
	ColSeq     = "_seq"
	ColTs      = "_ts"
	ColTxn     = "_txn"
	ColXid     = "_xid"
	ColOrd     = "_ord"
	ColSpecial = "_special"
	ColAbsent  = "_absent"
)

const (
	metaFormat      = "weir.format"
	metaTable       = "weir.table"
	metaVersion     = "weir.version"
	metaOrigin      = "weir.origin"
	metaFingerprint = "weir.fingerprint"
	metaColumns     = "weir.columns"
	metaType        = "weir.type"
	metaSource      = "weir.source_type"
	metaNullable    = "weir.nullable"
	metaKey         = "weir.key"
	metaID          = "weir.id"
	metaFill        = "weir.fill"
	format          = "1"
)

// layout is the set of optional system columns a batch has.
type layout uint8

const (
	withSpecial layout = 1 << iota
	withAbsent
	layouts = 1 << 2
)

// systemWidth is what the fixed system columns take per row: _op _seq _ts _txn _xid _ord.
const systemWidth = 1 + 8 + 8 + 8 + 4 + 4

var systemFields = []arrow.Field{
	{Name: ColOp, Type: arrow.PrimitiveTypes.Uint8},
	{Name: ColSeq, Type: arrow.PrimitiveTypes.Uint64},
	{Name: ColTs, Type: timestampUTC, Nullable: true},
	{Name: ColTxn, Type: arrow.PrimitiveTypes.Uint64},
	{Name: ColXid, Type: arrow.PrimitiveTypes.Uint32},
	{Name: ColOrd, Type: arrow.PrimitiveTypes.Uint32},
}

var (
	timestampUTC = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	specialType  = arrow.ListOfNonNullable(arrow.StructOf(
		arrow.Field{Name: "column", Type: arrow.PrimitiveTypes.Uint16},
		arrow.Field{Name: "text", Type: arrow.BinaryTypes.String}))
	absentType = arrow.ListOfNonNullable(arrow.PrimitiveTypes.Uint16)
)

// Arrow is the Arrow schema of the table's own columns with all metadata, without system columns.
func (s *Schema) Arrow() *arrow.Schema {
	fields := s.arrow[0].Fields()[:len(s.columns)]
	md := s.arrow[0].Metadata()
	return arrow.NewSchema(fields, &md)
}

func (s *Schema) buildArrow() error {
	fields := make([]arrow.Field, 0, len(s.columns)+len(systemFields)+2)
	for i, c := range s.columns {
		keys, values := []string{metaType, metaNullable}, []string{c.Type.String(), strconv.FormatBool(c.Nullable)}
		if c.Source != "" {
			keys, values = append(keys, metaSource), append(values, c.Source)
		}
		if c.KeyPos != 0 {
			keys, values = append(keys, metaKey), append(values, strconv.Itoa(c.KeyPos))
		}
		if c.ID != 0 {
			keys, values = append(keys, metaID), append(values, strconv.Itoa(c.ID))
		}
		if c.Filled {
			keys, values = append(keys, metaFill), append(values, c.Fill)
		}
		fields = append(fields, arrow.Field{
			Name: c.Name, Type: s.codecs[i].Arrow(), Nullable: true, Metadata: arrow.NewMetadata(keys, values),
		})
	}
	fields = append(fields, systemFields...)
	md := arrow.NewMetadata(
		[]string{metaFormat, metaTable, metaVersion, metaOrigin, metaFingerprint, metaColumns},
		[]string{
			format, string(s.table), strconv.FormatUint(uint64(s.version), 10), s.origin,
			s.fingerprint.String(), strconv.Itoa(len(s.columns)),
		})
	for l := range layout(layouts) {
		f := slices.Clip(fields)
		if l&withSpecial != 0 {
			f = append(f, arrow.Field{Name: ColSpecial, Type: specialType})
		}
		if l&withAbsent != 0 {
			f = append(f, arrow.Field{Name: ColAbsent, Type: absentType})
		}
		s.arrow[l] = arrow.NewSchema(f, &md)
		var head bytes.Buffer
		payload := ipc.GetSchemaPayload(s.arrow[l], memory.DefaultAllocator)
		if _, err := payload.WritePayload(&head); err != nil {
			return fmt.Errorf("encode Arrow schema: %w", err)
		}
		s.head[l] = head.Bytes()
	}
	return nil
}

// SchemaFromArrow reads back what Schema.Arrow or an encoded batch declares. It refuses a schema whose Arrow types do not
// fit the declared logical types, or whose content does not give the declared fingerprint.
func SchemaFromArrow(a *arrow.Schema) (*Schema, error) {
	s, _, err := schemaFromArrow(a)
	return s, err
}

func schemaFromArrow(a *arrow.Schema) (*Schema, layout, error) {
	md := a.Metadata()
	get := func(key string) string {
		v, _ := md.GetValue(key)
		return v
	}
	if f := get(metaFormat); f != format {
		return nil, 0, fmt.Errorf("schema metadata %s is %q, this release reads %q", metaFormat, f, format)
	}
	n, err := strconv.Atoi(get(metaColumns))
	if err != nil || n < 0 || n > a.NumFields() {
		return nil, 0, fmt.Errorf("schema metadata %s: not a number of columns", metaColumns)
	}
	version, err := strconv.ParseUint(get(metaVersion), 10, 32)
	if err != nil {
		return nil, 0, fmt.Errorf("schema metadata %s: not a version", metaVersion)
	}
	columns := make([]Column, n)
	for i := range columns {
		f := a.Field(i)
		if columns[i], err = columnFromField(f); err != nil {
			return nil, 0, fmt.Errorf("column %q: %w", f.Name, err)
		}
		if !arrow.TypeEqual(f.Type, CodecFor(columns[i].Type).Arrow()) {
			return nil, 0, fmt.Errorf("column %q: Arrow type %v does not hold %v", f.Name, f.Type, columns[i].Type)
		}
	}
	s, err := NewSchema(TableID(get(metaTable)), uint32(version), get(metaOrigin), columns)
	if err != nil {
		return nil, 0, err
	}
	if got := get(metaFingerprint); got != s.fingerprint.String() {
		return nil, 0, fmt.Errorf("schema fingerprint is %s, metadata says %q", s.fingerprint, got)
	}
	l, err := layoutOf(a.Fields()[n:])
	return s, l, err
}

func columnFromField(f arrow.Field) (Column, error) {
	c := Column{Name: f.Name}
	text, ok := f.Metadata.GetValue(metaType)
	if !ok {
		return c, errors.New("no " + metaType)
	}
	var err error
	if c.Type, err = ParseType(text); err != nil {
		return c, err
	}
	c.Source, _ = f.Metadata.GetValue(metaSource)
	nullable, _ := f.Metadata.GetValue(metaNullable)
	c.Nullable = nullable == "true"
	if pos, ok := f.Metadata.GetValue(metaKey); ok {
		if c.KeyPos, err = strconv.Atoi(pos); err != nil || c.KeyPos < 1 {
			return c, fmt.Errorf("%s is %q", metaKey, pos)
		}
	}
	if id, ok := f.Metadata.GetValue(metaID); ok {
		if c.ID, err = strconv.Atoi(id); err != nil || c.ID < 1 {
			return c, fmt.Errorf("%s is %q", metaID, id)
		}
	}
	c.Fill, c.Filled = f.Metadata.GetValue(metaFill)
	return c, nil
}

// layoutOf checks the system fields that follow the table's own; none at all is a bare table schema.
func layoutOf(fields []arrow.Field) (layout, error) {
	if len(fields) == 0 {
		return 0, nil
	}
	var l layout
	want := systemFields
	for _, f := range fields {
		switch {
		case len(want) > 0 && f.Name == want[0].Name && arrow.TypeEqual(f.Type, want[0].Type):
			want = want[1:]
		case len(want) == 0 && l == 0 && f.Name == ColSpecial && arrow.TypeEqual(f.Type, specialType):
			l |= withSpecial
		case len(want) == 0 && l&withAbsent == 0 && f.Name == ColAbsent && arrow.TypeEqual(f.Type, absentType):
			l |= withAbsent
		default:
			return 0, fmt.Errorf("system column %q %v out of place", f.Name, f.Type)
		}
	}
	if len(want) > 0 {
		return 0, fmt.Errorf("system column %s missing", want[0].Name)
	}
	return l, nil
}
