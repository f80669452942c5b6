package rows

import "errors"

// The fields of Arrow's Schema and Field tables (format/Schema.fbs).
const (
	schemaFields     = 1
	schemaMetadata   = 2
	fieldName        = 0
	fieldTypeKind    = 2
	fieldDictionary  = 4
	fieldChildren    = 5
	fieldMetadata    = 6
	keyValueKey      = 0
	keyValueValue    = 1
	typeKindUnion    = 14
	maxSchemaNesting = 4
)

var errSchemaSize = errors.New("schema message: describes more than it holds")

// boundSchema proves that reading a schema message costs no more than its own length. Arrow's reader allocates by the
// counts it finds, and a flatbuffer may refer to one table or string from many places: a few kilobytes then describe
// terabytes. Encode never shares, so what an honest message describes is at most its length.
func boundSchema(header flatTable) error {
	b := bound{left: len(header.buf)}
	if err := b.fields(header, schemaFields, 0); err != nil {
		return err
	}
	return b.keyValues(header, schemaMetadata)
}

type bound struct{ left int }

func (b *bound) spend(n int) error {
	if b.left -= n; b.left < 0 {
		return errSchemaSize
	}
	return nil
}

func (b *bound) str(t flatTable, n int) error {
	_, length, err := t.vector(n, 1)
	if err != nil {
		return err
	}
	return b.spend(length)
}

// vector spends what the references of a vector of tables take before they are read.
func (b *bound) vector(t flatTable, n int) ([]flatTable, error) {
	_, count, err := t.vector(n, 4)
	if err != nil {
		return nil, err
	}
	if err := b.spend(4 * count); err != nil {
		return nil, err
	}
	return t.tables(n)
}

func (b *bound) fields(t flatTable, n, depth int) error {
	fields, err := b.vector(t, n)
	if err != nil {
		return err
	}
	if len(fields) > 0 && depth == maxSchemaNesting {
		return errors.New("schema message: nested too deep")
	}
	for _, f := range fields {
		kind, err := f.byte(fieldTypeKind)
		if err != nil {
			return err
		}
		_, dictionary, err := f.table(fieldDictionary)
		if err != nil {
			return err
		}
		if kind == typeKindUnion || dictionary {
			return errors.New("schema message: a type that no batch has")
		}
		if err := b.str(f, fieldName); err != nil {
			return err
		}
		if err := b.fields(f, fieldChildren, depth+1); err != nil {
			return err
		}
		if err := b.keyValues(f, fieldMetadata); err != nil {
			return err
		}
	}
	return nil
}

func (b *bound) keyValues(t flatTable, n int) error {
	pairs, err := b.vector(t, n)
	if err != nil {
		return err
	}
	for _, kv := range pairs {
		if err := errors.Join(b.str(kv, keyValueKey), b.str(kv, keyValueValue)); err != nil {
			return err
		}
	}
	return nil
}
