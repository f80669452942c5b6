package lake

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/services/weir/verify/audit"
)

// Layouts of times, as PostgreSQL writes them in UTC.
const (
	dateLayout = "2006-01-02"
	timeLayout = "2006-01-02 15:04:05.999999"
)

// text is a cell as PostgreSQL writes a value of its type (A2); nil for null.
func text(col arrow.Array, i int) (*string, error) {
	if col.IsNull(i) {
		return nil, nil //nolint:nilnil // null is a value
	}
	var s string
	switch a := col.(type) {
	case *array.Boolean:
		s = "f"
		if a.Value(i) {
			s = "t"
		}
	case *array.Int32:
		s = strconv.FormatInt(int64(a.Value(i)), 10)
	case *array.Int64:
		s = strconv.FormatInt(a.Value(i), 10)
	case *array.Float64:
		s = strconv.FormatFloat(a.Value(i), 'g', -1, 64)
	case *array.Decimal128:
		s = a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.String:
		s = a.Value(i)
	case *array.Binary:
		s = `\x` + hex.EncodeToString(a.Value(i))
	case *array.Date32:
		s = a.Value(i).ToTime().Format(dateLayout)
	case *array.Timestamp:
		kind := a.DataType().(*arrow.TimestampType)
		s = a.Value(i).ToTime(kind.Unit).UTC().Format(timeLayout)
		if kind.TimeZone != "" {
			s += "+00"
		}
	case *array.List:
		return list(a, i)
	case array.ExtensionArray: // uuid
		s = col.ValueStr(i)
	default:
		return nil, fmt.Errorf("no text form of %s", col.DataType())
	}
	return &s, nil
}

func list(a *array.List, i int) (*string, error) {
	from, to := a.ValueOffsets(i)
	elems := make([]*string, 0, to-from)
	for j := from; j < to; j++ {
		s, err := text(a.ListValues(), int(j))
		if err != nil {
			return nil, err
		}
		elems = append(elems, s)
	}
	s := audit.ArrayText(elems)
	return &s, nil
}
