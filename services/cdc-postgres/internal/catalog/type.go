package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/pgcodec"
)

// Type is one data type of the database, with what is needed to find its base.
type Type struct {
	OID uint32
	// Name is the server's own name without a modifier; outside pg_catalog it is qualified.
	Name string
	// Kind is b base, c composite, d domain, e enum, p pseudo, r range, m multirange.
	Kind byte
	// Base, BaseModifier and BaseDimensions are those of a domain; a domain over a domain leads to the last one.
	Base           uint32
	BaseModifier   int32
	BaseDimensions int
	// Elem is the element type of an array, else 0. Types that only look like arrays (point, int2vector) have none.
	Elem uint32
	// Delimiter separates the values of the type in an array.
	Delimiter byte
	// Verbatim says that the type's binary form is its text: enums, citext.
	Verbatim bool
}

// Types reads data types with all the types they rest on.
func Types(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32]Type, error) {
	found := make(map[uint32]Type)
	for len(oids) > 0 {
		rows, err := conn.Query(ctx, `
SELECT t.oid, format_type(t.oid, NULL), t.typtype::text, t.typbasetype, t.typtypmod, t.typndims,
       CASE WHEN e.typarray = t.oid THEN t.typelem ELSE 0 END, t.typdelim::text,
       coalesce(l.lanname = 'internal' AND s.prosrc IN
         ('textsend', 'varcharsend', 'bpcharsend', 'namesend', 'enum_send', 'json_send', 'xml_send'), false)
FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
     LEFT JOIN pg_proc s ON s.oid = t.typsend LEFT JOIN pg_language l ON l.oid = s.prolang
WHERE t.oid = ANY($1)`, oids)
		if err != nil {
			return nil, fmt.Errorf("read types: %w", err)
		}
		oids = nil
		var t Type
		var kind, delimiter string
		_, err = pgx.ForEachRow(rows, []any{
			&t.OID, &t.Name, &kind, &t.Base, &t.BaseModifier, &t.BaseDimensions, &t.Elem, &delimiter, &t.Verbatim,
		}, func() error {
			t.Kind, t.Delimiter = kind[0], delimiter[0]
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

// CodecOf resolves the type of a column from what Types returned: a domain reads as its base type with the domain's
// modifier, an array as a list of its elements. A column that is declared with several dimensions, and an array of
// arrays by way of a domain, are the server's text. It is false when a type is not in types.
func CodecOf(types map[uint32]Type, oid uint32, modifier int32, dimensions int) (pgcodec.Codec, bool) {
	t, ok := types[oid]
	for ok && t.Kind == 'd' {
		if t.BaseModifier >= 0 {
			modifier = t.BaseModifier
		}
		dimensions = max(dimensions, t.BaseDimensions)
		t, ok = types[t.Base]
	}
	switch {
	case !ok:
		return pgcodec.Codec{}, false
	case t.Elem != 0:
		elem, ok := CodecOf(types, t.Elem, modifier, 0)
		if dimensions > 1 || types[t.Elem].Delimiter != ',' {
			return pgcodec.Opaque(elem.SourceType() + "[]"), ok
		}
		return pgcodec.ArrayOf(elem), ok
	case t.Verbatim && t.OID >= firstUserOID:
		return pgcodec.Verbatim(t.Name), true
	}
	return pgcodec.ForOID(t.OID, modifier, t.Name), true
}

// firstUserOID is the first object identifier that is not of the server's own catalog (FirstNormalObjectId).
const firstUserOID = 16384
