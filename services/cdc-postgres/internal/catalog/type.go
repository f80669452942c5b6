package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Type is one data type of the database, with what is needed to find its base.
type Type struct {
	OID uint32
	// Name is the server's own name without a modifier.
	Name string
	// Kind is b base, c composite, d domain, e enum, p pseudo, r range, m multirange.
	Kind byte
	// Base and BaseModifier are those of a domain; a domain over a domain leads to the last one.
	Base         uint32
	BaseModifier int32
	// Elem is the element type of an array, else 0.
	Elem uint32
}

// Types reads data types with all the types they rest on.
func Types(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32]Type, error) {
	found := make(map[uint32]Type)
	for len(oids) > 0 {
		rows, err := conn.Query(ctx, `
SELECT oid, format_type(oid, NULL), typtype::text, typbasetype, typtypmod,
       CASE WHEN typcategory = 'A' THEN typelem ELSE 0 END
FROM pg_type WHERE oid = ANY($1)`, oids)
		if err != nil {
			return nil, fmt.Errorf("read types: %w", err)
		}
		oids = nil
		var t Type
		var kind string
		_, err = pgx.ForEachRow(rows, []any{&t.OID, &t.Name, &kind, &t.Base, &t.BaseModifier, &t.Elem}, func() error {
			t.Kind = kind[0]
			found[t.OID] = t
			for _, next := range []uint32{t.Base, t.Elem} {
				if _, known := found[next]; next != 0 && !known {
					oids = append(oids, next)
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read types: %w", err)
		}
	}
	return found, nil
}
