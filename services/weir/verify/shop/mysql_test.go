package shop

import (
	"slices"
	"strings"
	"testing"
)

// Every statement can be said in MySQL's words: parameters by place, in the order of their values, and nothing of PostgreSQL's own.
func TestForMySQL(t *testing.T) {
	t.Parallel()
	g := In("wv1_shop", 7)
	cascades := make(map[Kind]int)
	for range 3000 {
		tx := g.Next()
		for _, s := range tx.Statements {
			all := forMySQL(s)
			cascades[tx.Kind] += len(all) - 1
			for _, one := range all {
				if strings.Count(one.SQL, "?") != len(one.Args) || strings.Contains(one.SQL, "jsonb") || strings.Contains(one.SQL, "||") {
					t.Fatalf("%s: %s with %d values", tx.Kind, one.SQL, len(one.Args))
				}
			}
		}
	}
	for _, k := range Kinds() {
		if want := k == Renumber || k == Cancel; (cascades[k] > 0) != want {
			t.Errorf("%s: %d statements in the place of cascades", k, cascades[k])
		}
	}
	moved := forMySQL(Statement{SQL: "UPDATE wv1_shop.orders SET id = $2 WHERE id = $1", Args: []any{int64(1), int64(2)}})
	if len(moved) != 2 || moved[0].SQL != "UPDATE wv1_shop.order_items SET order_id = ? WHERE order_id = ?" ||
		!slices.Equal(moved[0].Args, []any{int64(2), int64(1)}) {
		t.Errorf("%+v", moved)
	}
}
