package rows_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"weir.dev/weir/pkg/rows"
)

var update = flag.Bool("update", false, "write golden files anew")

// keyCase is a key: one value per key column, of the column's type; nil is null.
type keyCase struct {
	types  []rows.Type
	values []any
}

func one(k rows.Kind, v any) keyCase { return keyCase{[]rows.Type{rows.Of(k)}, []any{v}} }

// goldenKeys are 10,000 keys: the edges of each type first, then the shapes that real tables have.
func goldenKeys() []keyCase {
	out := []keyCase{
		one(rows.KindInt64, nil), one(rows.KindInt64, int64(0)), one(rows.KindInt64, int64(-1)),
		one(rows.KindInt64, int64(math.MinInt64)), one(rows.KindInt64, int64(math.MaxInt64)),
		one(rows.KindInt16, int16(-1)), one(rows.KindInt32, int32(-1)), one(rows.KindInt8, int8(-128)),
		one(rows.KindUint64, uint64(math.MaxUint64)), one(rows.KindUint32, uint32(1)),
		one(rows.KindBool, true), one(rows.KindBool, false), one(rows.KindBool, nil),
		one(rows.KindText, nil), one(rows.KindText, ""), one(rows.KindText, "\x00"), one(rows.KindText, " "),
		one(rows.KindText, "caf\u00e9"), one(rows.KindText, "cafe\u0301"), // NFC and NFD are two keys
		one(rows.KindText, "測試"), one(rows.KindText, "A"), one(rows.KindText, "a"), one(rows.KindText, "a "),
		one(rows.KindText, strings.Repeat("x", 1000)), one(rows.KindText, "null"),
		one(rows.KindBytes, []byte{}), one(rows.KindBytes, []byte{0}), one(rows.KindBytes, []byte("a")),
		one(rows.KindDecimalText, "0"), one(rows.KindDecimalText, "-0.00"), one(rows.KindDecimalText, "1.50"),
		one(rows.KindDecimalText, "100"), one(rows.KindDecimalText, "-123456789012345678901234567890.5"),
		one(rows.KindFloat64, 0.0), one(rows.KindFloat64, math.Copysign(0, -1)), one(rows.KindFloat64, math.NaN()),
		one(rows.KindFloat64, math.Inf(1)), one(rows.KindFloat64, 1.5), one(rows.KindFloat32, float32(1.5)),
		one(rows.KindDate, arrow.Date32(0)), one(rows.KindDate, arrow.Date32(-719162)),
		one(rows.KindTime, arrow.Time64(86_399_999_999)), one(rows.KindDuration, arrow.Duration(-1)),
		one(rows.KindTimestamp, arrow.Timestamp(-1)), one(rows.KindTimestampTZ, arrow.Timestamp(-1)),
		one(rows.KindUUID, bytes.Repeat([]byte{0xff}, 16)), one(rows.KindUUID, make([]byte, 16)),
		one(rows.KindJSON, `{"a":1}`),
		{[]rows.Type{rows.Decimal(10, 2)}, []any{decimal128.FromI64(150)}},
		{[]rows.Type{rows.Decimal(12, 4)}, []any{decimal128.FromI64(15000)}},
		{[]rows.Type{rows.Decimal(38, 0)}, []any{decimal128.FromI64(-7)}},
	}
	text, num := rows.Of(rows.KindText), rows.Of(rows.KindInt32)
	for _, pair := range [][2]any{{"", ""}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {nil, "a"}, {"a", nil}, {nil, nil}, {"b", "a"}} {
		out = append(out, keyCase{[]rows.Type{text, text}, []any{pair[0], pair[1]}})
	}
	for i := 0; len(out) < 10_000; i++ {
		switch i % 5 {
		case 0, 1:
			out = append(out, one(rows.KindInt64, int64(i)))
		case 2:
			out = append(out, keyCase{[]rows.Type{num, text}, []any{int32(i % 97), fmt.Sprintf("line-%d", i)}})
		case 3:
			id := make([]byte, 16)
			for k := range id {
				id[k] = byte(i >> (k % 3 * 5) * (k + 7))
			}
			out = append(out, one(rows.KindUUID, id))
		case 4:
			out = append(out, one(rows.KindText, fmt.Sprintf("user%d@example.org", i)))
		}
	}
	return out
}

// put appends v, of the Go type that Arrow's builder for it takes.
func put(b array.Builder, v any) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int8Builder:
		b.Append(v.(int8))
	case *array.Int16Builder:
		b.Append(v.(int16))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Uint8Builder:
		b.Append(v.(uint8))
	case *array.Uint16Builder:
		b.Append(v.(uint16))
	case *array.Uint32Builder:
		b.Append(v.(uint32))
	case *array.Uint64Builder:
		b.Append(v.(uint64))
	case *array.Float32Builder:
		b.Append(v.(float32))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Decimal128Builder:
		b.Append(v.(decimal128.Num))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.FixedSizeBinaryBuilder:
		b.Append(v.([]byte))
	case *array.Date32Builder:
		b.Append(v.(arrow.Date32))
	case *array.Time64Builder:
		b.Append(v.(arrow.Time64))
	case *array.DurationBuilder:
		b.Append(v.(arrow.Duration))
	case *array.TimestampBuilder:
		b.Append(v.(arrow.Timestamp))
	default:
		panic(fmt.Sprintf("no put for %T", b))
	}
}

// keyWorld keeps the builder of each list of key types.
type keyWorld map[string]*rows.Builder

func (w keyWorld) builder(t testing.TB, types []rows.Type) *rows.Builder {
	t.Helper()
	if b := w[fmt.Sprint(types)]; b != nil {
		return b
	}
	var columns []rows.Column
	for i, typ := range types {
		columns = append(columns, rows.Column{Name: fmt.Sprintf("k%d", i), Type: typ, KeyPos: i + 1})
	}
	s, err := rows.NewSchema("t", 1, "", columns)
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	w[fmt.Sprint(types)] = b
	return b
}

// key is the canonical form and the hash of k; the hash is taken by both ways the package has.
func (w keyWorld) key(t testing.TB, k keyCase) ([]byte, uint64) {
	t.Helper()
	b := w.builder(t, k.types)
	for i, v := range k.values {
		if v == nil {
			b.Null(i)
		} else {
			put(b.Column(i), v)
		}
	}
	b.EndRow(rows.Meta{Op: rows.OpInsert})
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	keyer := rows.NewKeyer(b.Schema())
	key := keyer.Append(nil, batch, 0)
	hash := rows.HashKey(key)
	if h := keyer.Hashes(nil, batch); len(h) != 1 || h[0] != hash {
		t.Fatalf("%v: Hashes gives %x, HashKey %x", k, h, hash)
	}
	return key, hash
}

// I2: the golden file never changes. A line is the hash of a key; the key's group is its top seven bits.
func TestGoldenKeys(t *testing.T) {
	var got bytes.Buffer
	keys, world := goldenKeys(), keyWorld{}
	for _, k := range keys {
		_, hash := world.key(t, k)
		fmt.Fprintf(&got, "%016x\n", hash)
		if g := rows.GroupOf(hash); g != int(hash>>57) {
			t.Fatalf("key %v: group %d of hash %016x", k.values, g, hash)
		}
	}
	path := filepath.Join("testdata", "keys.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got.Bytes(), want) {
		return
	}
	a, b := bufio.NewScanner(&got), bufio.NewScanner(bytes.NewReader(want))
	for n := 0; a.Scan() && b.Scan(); n++ {
		if a.Text() != b.Text() {
			t.Fatalf("key %d %v hashes to %s, was %s: stored state of running jobs no longer matches", n, keys[n].values, a.Text(), b.Text())
		}
	}
	t.Fatal("the number of keys changed")
}

func TestCanonicalKeysOfEqualValues(t *testing.T) {
	world := keyWorld{}
	for name, pair := range map[string][2]keyCase{
		"widened integer": {one(rows.KindInt16, int16(-5)), one(rows.KindInt64, int64(-5))},
		"widened decimal": {
			{[]rows.Type{rows.Decimal(10, 2)}, []any{decimal128.FromI64(150)}},
			{[]rows.Type{rows.Decimal(12, 4)}, []any{decimal128.FromI64(15000)}},
		},
		"decimal and text":   {{[]rows.Type{rows.Decimal(10, 2)}, []any{decimal128.FromI64(-150)}}, one(rows.KindDecimalText, "-1.5")},
		"zeros of a decimal": {one(rows.KindDecimalText, "1.0"), one(rows.KindDecimalText, "1.00")},
		"negative zero":      {one(rows.KindDecimalText, "-0.0"), one(rows.KindDecimalText, "0")},
		"zeros of a float":   {one(rows.KindFloat64, 0.0), one(rows.KindFloat64, math.Copysign(0, -1))},
		"two NaN":            {one(rows.KindFloat64, math.NaN()), one(rows.KindFloat64, math.Float64frombits(0x7ff8000000000000))},
		"widened float":      {one(rows.KindFloat32, float32(0.5)), one(rows.KindFloat64, 0.5)},
		"text and varchar":   {one(rows.KindText, "a"), one(rows.KindText, "a")},
	} {
		a, _ := world.key(t, pair[0])
		b, _ := world.key(t, pair[1])
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %x and %x", name, a, b)
		}
	}
}

func TestCanonicalKeysOfDifferentValues(t *testing.T) {
	seen, world := make(map[string]keyCase), keyWorld{}
	for _, k := range goldenKeys()[58:] { // behind the edges, which hold equal values on purpose
		key, _ := world.key(t, k)
		if other, dup := seen[string(key)]; dup {
			t.Fatalf("%v and %v have one canonical key", k.values, other.values)
		}
		seen[string(key)] = k
	}
	for _, pair := range [][2]keyCase{
		{one(rows.KindText, nil), one(rows.KindText, "")},
		{one(rows.KindText, "caf\u00e9"), one(rows.KindText, "cafe\u0301")},
		{
			{[]rows.Type{rows.Of(rows.KindText), rows.Of(rows.KindText)}, []any{"ab", ""}},
			{[]rows.Type{rows.Of(rows.KindText), rows.Of(rows.KindText)}, []any{"a", "b"}},
		},
	} {
		a, _ := world.key(t, pair[0])
		b, _ := world.key(t, pair[1])
		if bytes.Equal(a, b) {
			t.Errorf("%v and %v have one canonical key", pair[0].values, pair[1].values)
		}
	}
}

// Values that a key's type cannot hold are different keys, and none of them is null.
func TestSpecialsInKeys(t *testing.T) {
	s, err := rows.NewSchema("t", 1, "", []rows.Column{{Name: "at", Type: rows.Of(rows.KindTimestampTZ), KeyPos: 1}, {Name: "n", Type: rows.Of(rows.KindInt32), KeyPos: 2}})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	for _, text := range []string{"infinity", "-infinity", "0044-03-15 00:00:00+00 BC", "infinity"} {
		b.Special(0, text)
		b.Column(1).(*array.Int32Builder).Append(7)
		b.EndRow(rows.Meta{Op: rows.OpInsert})
	}
	b.Null(0)
	b.Column(1).(*array.Int32Builder).Append(7)
	b.EndRow(rows.Meta{Op: rows.OpInsert})
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	k := rows.NewKeyer(s)
	seen := make(map[string]int)
	for i := range batch.NumRows() {
		seen[string(k.Append(nil, batch, i))]++
	}
	if len(seen) != 4 || seen[string(k.Append(nil, batch, 0))] != 2 {
		t.Errorf("five rows of four keys have keys %v", seen)
	}
	out, err := rows.Collapse(batch)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, b := range out.Upserts {
		n += b.NumRows()
	}
	if n != 4 {
		t.Errorf("collapsed to %d rows", n)
	}
}
