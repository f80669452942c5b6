package position

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Type names a family of positions: what its fields are and how they compare.
type Type string

// The families that exist. A new source adds its own.
const (
	PostgresLSN Type = "POSTGRES_LSN"
	Generator   Type = "GENERATOR_INDEX"
	// MySQLGTID and MariaDBGTID are what a server had executed; they compare by containment. MySQLBinlog is a place in the
	// binary log of one server.
	MySQLGTID   Type = "MYSQL_GTID"
	MariaDBGTID Type = "MARIADB_GTID"
	MySQLBinlog Type = "MYSQL_BINLOG"
)

// The fields that positions of MySQL and MariaDB compare by. Beside them a position inside a transaction says which it is and
// how much of it lies before.
const (
	FieldGTIDs  = "gtids"
	FieldBinlog = "binlog"
)

// Position is one resume point. The zero value means "none": nothing has been read yet.
type Position struct {
	Type    Type              `json:"type"`
	Version int               `json:"version"`
	Fields  map[string]string `json:"fields"`
}

// New copies fields into a position of version 1. The caller's map may change afterwards.
func New(t Type, fields map[string]string) Position {
	return Position{Type: t, Version: 1, Fields: maps.Clone(fields)}
}

// IsZero reports whether there is no position.
func (p Position) IsZero() bool { return p.Type == "" }

// Equal reports whether both name the same point in the same family.
func (p Position) Equal(o Position) bool {
	return p.Type == o.Type && p.Version == o.Version && maps.Equal(p.Fields, o.Fields)
}

// String is the form shown to people: type and fields in the order of their names.
func (p Position) String() string {
	if p.IsZero() {
		return "none"
	}
	var b strings.Builder
	b.WriteString(string(p.Type))
	sep := byte(':')
	for _, k := range slices.Sorted(maps.Keys(p.Fields)) {
		b.WriteByte(sep)
		fmt.Fprintf(&b, "%s=%s", k, p.Fields[k])
		sep = ','
	}
	return b.String()
}
