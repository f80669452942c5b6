package rows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Special is a value its column's type cannot hold, in the source's own text.
type Special struct {
	Column int
	Text   string
}

// ends are the row ends of a list column that comes into being with its first item.
type ends struct {
	at []int32 // at[r] = items up to and with row r
}

// first makes the empty lists of the rows before row.
func (e *ends) first(row int) {
	if e.at == nil {
		e.at = make([]int32, row, max(2*row, 16))
	}
}

func (e *ends) endRow(rows, items int) {
	if e.at != nil && len(e.at) < rows {
		e.at = append(e.at, int32(items))
	}
}

func (e *ends) offsets() []int32 {
	off := append(make([]int32, 1, len(e.at)+1), e.at...)
	e.at = nil
	return off
}

// absentList builds `_absent`.
type absentList struct {
	ends
	columns []uint16
}

func (l *absentList) add(row int, column uint16) {
	l.first(row)
	l.columns = append(l.columns, column)
}

func (l *absentList) endRow(rows int) { l.ends.endRow(rows, len(l.columns)) }

func (l *absentList) bytes() int { return 4*len(l.at) + 2*len(l.columns) }

func (l *absentList) flush(n int) *array.List {
	if l.at == nil {
		return nil
	}
	items := makeArray(arrow.PrimitiveTypes.Uint16, len(l.columns), nil, 0, nil, rawBytes(l.columns))
	l.columns = nil
	return makeArray(absentType, n, nil, 0, []arrow.ArrayData{items.Data()}, rawBytes(l.offsets())).(*array.List)
}

// specialList builds `_special`.
type specialList struct {
	ends
	columns []uint16
	textEnd []int32
	text    []byte
}

func (l *specialList) add(row int, column uint16, text string) {
	l.first(row)
	l.columns = append(l.columns, column)
	l.text = append(l.text, text...)
	l.textEnd = append(l.textEnd, int32(len(l.text)))
}

func (l *specialList) endRow(rows int) { l.ends.endRow(rows, len(l.columns)) }

func (l *specialList) bytes() int { return 4*len(l.at) + 6*len(l.columns) + len(l.text) }

func (l *specialList) flush(n int) *array.List {
	if l.at == nil {
		return nil
	}
	items := len(l.columns)
	columns := makeArray(arrow.PrimitiveTypes.Uint16, items, nil, 0, nil, rawBytes(l.columns))
	textOff := append(make([]int32, 1, items+1), l.textEnd...)
	texts := makeArray(arrow.BinaryTypes.String, items, nil, 0, nil, rawBytes(textOff), l.text)
	pairs := makeArray(specialType.Elem(), items, nil, 0, []arrow.ArrayData{columns.Data(), texts.Data()})
	l.columns, l.textEnd, l.text = nil, nil, nil
	return makeArray(specialType, n, nil, 0, []arrow.ArrayData{pairs.Data()}, rawBytes(l.offsets())).(*array.List)
}
