package catalog

import "testing"

func TestUncounted(t *testing.T) {
	const columns = "CREATE TABLE `t` (\n  `id` int NOT NULL AUTO_INCREMENT,\n  `e` enum('a\n) ENGINE= AUTO_INCREMENT=5') DEFAULT NULL,\n  PRIMARY KEY (`id`)"
	for _, c := range []struct{ name, text, want string }{
		{"a counter", columns + "\n) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=utf8mb4", columns + "\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"},
		{"none", columns + "\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4", columns + "\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"},
		{"a view", "CREATE VIEW `v` AS SELECT 1", "CREATE VIEW `v` AS SELECT 1"},
	} {
		if got := uncounted(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
