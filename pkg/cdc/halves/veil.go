package halves

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// redacted takes the place of a value under the mask redact.
const redacted = "[redacted]"

// Veil says which values do not leave a source. Rows of the log and of the copy pass it on their way into a builder, so that
// nothing behind it has ever seen them. A nil veil lets everything through.
type Veil struct {
	columns *spec.Columns
	salt    []byte
	where   string
}

// NewVeil makes the veil of a source, or none when its spec hides nothing. The salt is resolved, and stays in the veil.
func NewVeil(columns *spec.Columns, resolve func(ref string) (string, error), where string) (*Veil, error) {
	if columns.IsZero() {
		return nil, nil
	}
	v := &Veil{columns: columns, where: where}
	if columns.Salt.IsZero() {
		return v, nil
	}
	salt, err := resolve(columns.Salt.Raw())
	if err != nil {
		return nil, fmt.Errorf("%s.columns.salt: %w", where, err)
	}
	if salt == "" && slices.ContainsFunc(columns.Mask, func(m spec.MaskedColumns) bool { return m.Mask == spec.MaskHash }) {
		return nil, fault.New(fault.SrcColumns, where+".columns.salt", "the salt is empty; without one, whoever can guess a value can find it",
			"where", where, "pattern", "the salt")
	}
	v.salt = []byte(salt)
	return v, nil
}

// Excludes reports whether a column is left out.
func (v *Veil) Excludes(schema, table, column string) bool {
	return v != nil && v.columns.Excludes(schema, table, column)
}

// Mask is what takes the place of a column's values.
func (v *Veil) Mask(schema, table, column string) spec.Mask {
	if v == nil {
		return spec.NoMask
	}
	return v.columns.MaskOf(schema, table, column)
}

// Cover is what a mask makes of a cell that is not null, given as text: nil for null. What it returns is valid until the next
// call; one goroutine may call it.
func (v *Veil) Cover(m spec.Mask) func(cell []byte) []byte {
	switch m {
	case spec.MaskNull:
		return func([]byte) []byte { return nil }
	case spec.MaskRedact:
		return func([]byte) []byte { return []byte(redacted) }
	case spec.MaskHash:
		mac := hmac.New(sha256.New, v.salt)
		var sum, text [2 * sha256.Size]byte
		return func(cell []byte) []byte {
			mac.Reset()
			mac.Write(cell)
			hex.Encode(text[:], mac.Sum(sum[:0]))
			return text[:]
		}
	case spec.NoMask:
	}
	return func(cell []byte) []byte { return cell }
}

// Used refuses a pattern that means no column of the captured tables: what it was to hide would be shown. means says whether one
// does.
func (v *Veil) Used(means func(p spec.ColumnPattern) bool) error {
	if v == nil {
		return nil
	}
	for _, p := range v.columns.Patterns() {
		if !means(p) {
			return v.fault(p.String(), fmt.Sprintf("%s means no column of the captured tables; what it was to hide would be shown", p))
		}
	}
	return nil
}

// SpareKey refuses to hide a column of a key: the bounds of the copy's chunks are values of it and lie on the bus, and rows
// without it cannot be told apart.
func (v *Veil) SpareKey(schema, table, column string) error {
	if !v.Excludes(schema, table, column) && v.Mask(schema, table, column) == spec.NoMask {
		return nil
	}
	return v.fault(fmt.Sprintf("%s.%s.%s", schema, table, column), fmt.Sprintf(
		"column %q is part of the key of table %s.%s, which identifies its rows on the way and at the sinks", column, schema, table))
}

func (v *Veil) fault(pattern, why string) error {
	return fault.New(fault.SrcColumns, v.where+".columns", why, "pattern", pattern, "where", v.where)
}
