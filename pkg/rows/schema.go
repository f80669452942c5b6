package rows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/zeebo/xxh3"
)

// TableID names a table within a job, in the source's own words: "public.orders", "shop.orders".
// It is an identity, not a quoted identifier.
type TableID string

// MaxColumns bounds a schema: `_absent` and `_special` name columns by uint16, and no supported database has more.
const MaxColumns = 4096

// Column is one column of a table as the source declares it.
type Column struct {
	// Name as the source spells it, unquoted.
	Name string
	// Type is the logical type; every value of the column has it.
	Type Type
	// Source is the type in the source's own words with its parameters, for example numeric(10,2);
	// a sink of the same kind of database may use it. Empty when the source has no such word.
	Source string
	// Nullable is the source's declaration. Arrow columns are nullable regardless: a delete may carry only the key.
	Nullable bool
	// KeyPos is the column's place in the key, from 1; 0 for a column outside it.
	KeyPos int
	// ID tells a column from others over all versions of its table: one that is renamed keeps it, one that is dropped and
	// made again has another. The columns of a table's first version have their places, from 1. 0 when the source cannot
	// tell; then a column is its name.
	ID int
	// Fill is the value, as text, that rows from before the column was added have in it; meaningful with Filled only.
	// Without it they have null.
	Fill   string
	Filled bool
}

// Fingerprint identifies the content of a schema: table, origin and columns, but not its version.
type Fingerprint uint64

// String gives 16 hex digits.
func (f Fingerprint) String() string { return fmt.Sprintf("%016x", uint64(f)) }

// Schema is one version of one table: an immutable value shared by all batches of that version.
// Make it with NewSchema or SchemaFromArrow; both guarantee that it is valid.
type Schema struct {
	table       TableID
	version     uint32
	origin      string
	columns     []Column
	codecs      []Codec
	key         []int
	fingerprint Fingerprint
	arrow       [layouts]*arrow.Schema
	head        [layouts][]byte // the encoded schema message of each layout
	fixedWidth  int
}

// NewSchema makes version of table. Origin names the kind of database the column's Source words come from
// ("postgres", "mysql"); empty when there are none. The columns are copied.
// It refuses empty or repeated column names or IDs, invalid types, names that are not UTF-8 and key positions that are not 1..k.
func NewSchema(table TableID, version uint32, origin string, columns []Column) (*Schema, error) {
	s := &Schema{table: table, version: version, origin: origin, columns: append([]Column(nil), columns...)}
	var errs []error
	if table == "" || !utf8.ValidString(string(table)) {
		errs = append(errs, errors.New("table: empty or not UTF-8"))
	}
	if len(columns) > MaxColumns {
		return nil, fmt.Errorf("schema of %s: %d columns, at most %d are supported", table, len(columns), MaxColumns)
	}
	seen := make(map[string]bool, len(columns))
	places := make(map[int]int)
	ids := make(map[int]bool, len(columns))
	for i, c := range s.columns {
		switch {
		case c.Name == "" || !utf8.ValidString(c.Name) || !utf8.ValidString(c.Source):
			errs = append(errs, fmt.Errorf("column %d: name or source type empty or not UTF-8", i))
		case seen[c.Name]:
			errs = append(errs, fmt.Errorf("column %q: repeated", c.Name))
		}
		seen[c.Name] = true
		if c.ID < 0 || (c.ID != 0 && ids[c.ID]) || !utf8.ValidString(c.Fill) || (c.Fill != "" && !c.Filled) {
			errs = append(errs, fmt.Errorf("column %q: identity repeated or negative, or a fill that is not text", c.Name))
		}
		ids[c.ID] = true
		if err := c.Type.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("column %q: %w", c.Name, err))
		}
		if c.KeyPos != 0 {
			if _, dup := places[c.KeyPos]; dup {
				errs = append(errs, fmt.Errorf("column %q: key position %d repeated", c.Name, c.KeyPos))
			}
			places[c.KeyPos] = i
		}
	}
	for pos := 1; pos <= len(places); pos++ {
		i, ok := places[pos]
		if !ok {
			errs = append(errs, fmt.Errorf("key positions are not 1 to %d", len(places)))
			break
		}
		s.key = append(s.key, i)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("schema of %s version %d: %w", table, version, err)
	}
	s.codecs = make([]Codec, len(s.columns))
	for i, c := range s.columns {
		s.codecs[i] = CodecFor(c.Type)
		s.fixedWidth += fixedWidth(s.codecs[i].Arrow())
	}
	s.fixedWidth += systemWidth
	s.fingerprint = s.digest()
	if err := s.buildArrow(); err != nil {
		return nil, fmt.Errorf("schema of %s version %d: %w", table, version, err)
	}
	return s, nil
}

// Table is the table the rows belong to.
func (s *Schema) Table() TableID { return s.table }

// Version counts the table's schema changes within a job.
func (s *Schema) Version() uint32 { return s.version }

// Origin is the kind of database whose words Column.Source uses, or empty.
func (s *Schema) Origin() string { return s.origin }

// NumColumns counts the table's own columns; system columns are not among them.
func (s *Schema) NumColumns() int { return len(s.columns) }

// Column is the i-th of the table's own columns.
func (s *Schema) Column(i int) Column { return s.columns[i] }

// Columns are the table's own columns in order. Do not modify.
func (s *Schema) Columns() []Column { return s.columns }

// Codec is the codec of column i, resolved once when the schema was made.
func (s *Schema) Codec(i int) Codec { return s.codecs[i] }

// Key lists the indexes of the key columns in key order; empty for a table without a key. Do not modify.
func (s *Schema) Key() []int { return s.key }

// Fingerprint identifies the schema's content; equal content has equal fingerprints in any process and version.
func (s *Schema) Fingerprint() Fingerprint { return s.fingerprint }

// Same reports whether both schemas are the same version with the same content.
func (s *Schema) Same(o *Schema) bool {
	return s == o || (s.version == o.version && s.fingerprint == o.fingerprint && s.table == o.table)
}

// Lookup finds a column by name.
func (s *Schema) Lookup(name string) (int, bool) {
	for i := range s.columns {
		if s.columns[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// digest hashes a self-delimiting description, so no two different schemas share an input; but an ID that is the column's
// place counts as none, so that a table is the same whether or not its source can tell columns apart.
func (s *Schema) digest() Fingerprint {
	var d []byte
	str := func(v string) {
		d = binary.AppendUvarint(d, uint64(len(v)))
		d = append(d, v...)
	}
	str("weir.schema.1")
	str(string(s.table))
	str(s.origin)
	for i, c := range s.columns {
		str(c.Name)
		str(c.Type.String())
		str(c.Source)
		str(strconv.FormatBool(c.Nullable))
		str(strconv.Itoa(c.KeyPos))
		if c.ID != 0 && c.ID != i+1 {
			str("id " + strconv.Itoa(c.ID))
		}
		if c.Filled {
			str("fill " + c.Fill)
		}
	}
	return Fingerprint(xxh3.Hash(d))
}
