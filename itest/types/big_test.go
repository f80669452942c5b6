package types

import "testing"

// Values of megabytes do not fit into a message of the bus and pass nonetheless, among small ones and unchanged.
const (
	bigTables = `CREATE TABLE m.big (id int PRIMARY KEY, n int, b bytea, t text, j jsonb, a int[], s text[]);
ALTER TABLE m.big ALTER b SET STORAGE EXTERNAL;
`
	bigRows = `
INSERT INTO m.big (id, n, b) SELECT 1, 1, decode(repeat('00ff5c', 1750000), 'hex'); COMMIT;
INSERT INTO m.big (id, n) SELECT g, 0 FROM generate_series(2, 500) g; COMMIT;
`
	bigChanges = `
BEGIN;
UPDATE m.big SET t = repeat('ä', 3000000) WHERE id = 2;
UPDATE m.big SET j = to_jsonb(array_fill('x"y'::text, ARRAY[1000000])) WHERE id = 3;
UPDATE m.big SET a = array_fill(1234567, ARRAY[1000000]), s = array_fill('two words'::text, ARRAY[500000]) WHERE id = 4;
COMMIT;
UPDATE m.big SET n = 2; COMMIT;
UPDATE m.big SET id = -1, b = b || b WHERE id = 1; COMMIT;
DELETE FROM m.big WHERE id BETWEEN 10 AND 100; COMMIT;
`
)

func TestBigValues(t *testing.T) {
	w := start(t, path{name: "log", snapshot: "never", op: "insert"}, bigTables, bigRows, bigChanges)
	w.compare(t, []string{"m.big"})
}
