package rows

import (
	"fmt"
	"testing"
)

// Two keys with one hash stay two keys, also when the table grows.
func TestKeyTableTellsCollisionsApart(t *testing.T) {
	var table keyTable
	const keys = 3000
	for round := range 2 {
		for i := range keys {
			if id, found := table.place(uint64(i%5), fmt.Append(nil, i)); id != i || found != (round == 1) {
				t.Fatalf("round %d: key %d is number %d, found %v", round, i, id, found)
			}
		}
	}
	if len(table.keys) != keys {
		t.Fatalf("%d keys of %d", len(table.keys), keys)
	}
}
