package shop

import "strings"

// Schema makes the shop's tables, empty, in the schema shop.
//
// The tables have what a replica has to get right: integer, text and composite
// keys, foreign keys that cascade, numerics with a scale, JSON, arrays, bytes,
// times with a zone, and a description that is stored out of line, so that an
// update that leaves it alone does not log it.
const Schema = `
CREATE SCHEMA shop;

CREATE TABLE shop.customers (
	id         bigint PRIMARY KEY,
	email      text NOT NULL UNIQUE,
	name       text NOT NULL,
	country    text,
	active     boolean NOT NULL DEFAULT true,
	created_at timestamptz NOT NULL,
	profile    jsonb NOT NULL DEFAULT '{}',
	tags       text[]
);

CREATE TABLE shop.products (
	sku         text PRIMARY KEY,
	ean         uuid NOT NULL,
	name        text NOT NULL,
	price       numeric(12,2) NOT NULL,
	stock       integer NOT NULL,
	weight_kg   double precision,
	launched    date,
	thumbnail   bytea,
	description text NOT NULL
);
ALTER TABLE shop.products ALTER COLUMN description SET STORAGE EXTERNAL;

CREATE TABLE shop.orders (
	id          bigint PRIMARY KEY,
	customer_id bigint NOT NULL REFERENCES shop.customers,
	status      text NOT NULL,
	total       numeric(14,2) NOT NULL,
	placed_at   timestamptz NOT NULL,
	note        text
);

CREATE TABLE shop.order_items (
	order_id bigint NOT NULL REFERENCES shop.orders ON UPDATE CASCADE ON DELETE CASCADE,
	line     smallint NOT NULL,
	sku      text NOT NULL,
	quantity integer NOT NULL,
	price    numeric(12,2) NOT NULL,
	PRIMARY KEY (order_id, line)
);
`

// SchemaIn is [Schema] for a schema of another name, which needs no quotes.
func SchemaIn(schema string) string {
	return in(schema, strings.Replace(Schema, "CREATE SCHEMA shop;", "CREATE SCHEMA "+schema+";", 1))
}

// in moves SQL of the shop to another schema.
func in(schema, sql string) string { return strings.ReplaceAll(sql, "shop.", schema+".") }

// Key lists the columns of a table's primary key.
func Key(table string) []string {
	switch table {
	case "products":
		return []string{"sku"}
	case "order_items":
		return []string{"order_id", "line"}
	}
	return []string{"id"}
}

// Tables lists the tables of the shop without their schema.
func Tables() []string { return []string{"customers", "products", "orders", "order_items"} }

// TornMySQL is [Torn] in MySQL's words.
func TornMySQL(database string) string {
	return `
SELECT (
	SELECT count(*) FROM ` + database + `.orders o LEFT JOIN (
		SELECT order_id, sum(quantity * price) AS total FROM ` + database + `.order_items GROUP BY order_id
	) i ON i.order_id = o.id
	WHERE NOT o.total <=> i.total
) + (
	SELECT count(DISTINCT i.order_id) FROM ` + database + `.order_items i
	WHERE NOT EXISTS (SELECT 1 FROM ` + database + `.orders o WHERE o.id = i.order_id)
)`
}

// Torn returns a query for the number of orders in a copy of the shop whose
// total is not the sum of their items, or that lack their items, or items that
// lack their order. It is 0 wherever whole transactions are visible (S3).
func Torn(schema string) string {
	return `
SELECT count(*)
FROM ` + schema + `.orders o
FULL JOIN (
	SELECT order_id, sum(quantity * price) AS total FROM ` + schema + `.order_items GROUP BY order_id
) i ON i.order_id = o.id
WHERE o.total IS DISTINCT FROM i.total`
}
