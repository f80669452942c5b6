package catalog

import "testing"

func TestBefore(t *testing.T) {
	t.Parallel()
	const unknown, null = "unknown", "null"
	for _, c := range []struct {
		d     Default
		maria bool
		want  string
	}{
		{Default{Type: "int", Nullable: true}, false, null},
		{Default{Type: "int", Nullable: true, Text: new("NULL")}, true, null},
		{Default{Type: "timestamp", Nullable: true}, false, null},
		{Default{Type: "int", Nullable: true, Extra: "VIRTUAL GENERATED"}, false, unknown},
		{Default{Type: "int", Nullable: true, Extra: "INVISIBLE"}, false, null},
		{Default{Type: "int", Text: new("7")}, false, "7"},
		{Default{Type: "bigint", Text: new("-7")}, true, "-7"},
		{Default{Type: "int", Text: new("'7'")}, true, "7"},
		{Default{Type: "int"}, false, "0"},
		{Default{Type: "int", Extra: "AUTO_INCREMENT"}, false, unknown},
		{Default{Type: "int", Text: new("(1 + 1)"), Extra: "DEFAULT_GENERATED"}, false, unknown},
		{Default{Type: "int", Text: new("(1 + 1)")}, true, unknown},
		{Default{Type: "decimal", Text: new("1.50")}, false, "1.50"},
		{Default{Type: "decimal", Text: new("1e3")}, false, unknown},
		{Default{Type: "double", Text: new("1.5e10")}, false, "1.5e10"},
		{Default{Type: "varchar", Text: new("it's")}, false, "it's"},
		{Default{Type: "varchar", Text: new("'it''s'")}, true, "it's"},
		{Default{Type: "varchar", Text: new(`'a\nb'`)}, true, unknown},
		{Default{Type: "varchar", Text: new("uuid()")}, true, unknown},
		{Default{Type: "varchar", Text: new("")}, false, ""},
		{Default{Type: "text"}, false, ""},
		{Default{Type: "enum"}, false, unknown}, // the first of its words
		{Default{Type: "enum", Text: new("a")}, false, "a"},
		{Default{Type: "date", Text: new("2020-01-02")}, false, "2020-01-02"},
		{Default{Type: "date", Text: new("0000-00-00")}, false, unknown},
		{Default{Type: "date", Text: new("2020-00-02")}, false, unknown},
		{Default{Type: "date"}, false, unknown},
		{Default{Type: "datetime", Text: new("2020-01-02 03:04:05")}, false, "2020-01-02 03:04:05"},
		{Default{Type: "datetime", Text: new("CURRENT_TIMESTAMP"), Extra: "DEFAULT_GENERATED"}, false, unknown},
		{Default{Type: "datetime", Text: new("current_timestamp()")}, true, unknown},
		{Default{Type: "timestamp", Text: new("2020-01-02 03:04:05")}, false, unknown}, // in which zone?
		{Default{Type: "bit", Text: new("b'1'")}, false, unknown},
		{Default{Type: "json"}, false, unknown},
	} {
		value, known := c.d.Before(c.maria)
		got := unknown
		switch {
		case known && value == nil:
			got = null
		case known:
			got = *value
		}
		if got != c.want {
			text := "none"
			if c.d.Text != nil {
				text = *c.d.Text
			}
			t.Errorf("%s, nullable %t, default %s, %s, MariaDB %t: %q, want %q", c.d.Type, c.d.Nullable, text, c.d.Extra, c.maria, got, c.want)
		}
	}
}
