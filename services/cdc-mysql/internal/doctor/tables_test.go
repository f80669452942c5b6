package doctor_test

import (
	"slices"
	"testing"

	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/doctor"
)

// TestForeignKeys reads the forms in which the servers print them, and names that look like something else.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	const create = "CREATE TABLE `c` (\n  `id` int NOT NULL,\n  PRIMARY KEY (`id`),\n" +
		"  CONSTRAINT `a ``) b` FOREIGN KEY (`x`, `y)`) REFERENCES `p` (`x`, `y`) ON DELETE CASCADE ON UPDATE SET NULL,\n" +
		"  CONSTRAINT `m` FOREIGN KEY (`x`,`y`) REFERENCES `o`.`p` (`x`,`y`) ON UPDATE CASCADE,\n" +
		"  CONSTRAINT `quiet` FOREIGN KEY (`x`) REFERENCES `p` (`x`) ON DELETE RESTRICT\n) ENGINE=InnoDB"
	want := []doctor.ForeignKey{
		{Name: "`a ``) b`", Columns: "`x`, `y)`", Parent: "`s`.`p`", Of: "`x`, `y`", Action: "ON DELETE CASCADE ON UPDATE SET NULL"},
		{Name: "`m`", Columns: "`x`,`y`", Parent: "`o`.`p`", Of: "`x`,`y`", Action: "ON UPDATE CASCADE"},
	}
	if got := doctor.ForeignKeys(core.Name{Schema: "s", Table: "c"}, create); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
