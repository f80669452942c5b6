package audit

import "testing"

func TestCompare(t *testing.T) {
	t.Parallel()
	content := func(cells ...[2]string) Content {
		c := make(Content)
		for _, cell := range cells {
			row := Cells{"id": &cell[0], "v": &cell[1]}
			if cell[1] == "" {
				row["v"] = nil
			}
			if err := c.Add([]string{"id"}, row); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	for _, tc := range []struct {
		name                      string
		source, target            Content
		missing, extra, different int64
	}{
		{"equal", content([2]string{"1", "a"}, [2]string{"2", ""}), content([2]string{"2", ""}, [2]string{"1", "a"}), 0, 0, 0},
		{"missing", content([2]string{"1", "a"}), content(), 1, 0, 0},
		{"extra", content(), content([2]string{"1", "a"}), 0, 1, 0},
		{"twice", content([2]string{"1", "a"}), content([2]string{"1", "a"}, [2]string{"1", "a"}), 0, 1, 0},
		{"null is a value", content([2]string{"1", ""}), content([2]string{"1", "a"}), 0, 0, 1},
	} {
		if c := Compare(tc.source, tc.target); c.Missing != tc.missing || c.Extra != tc.extra || c.Different != tc.different ||
			c.Equal() != (c.Missing+c.Extra+c.Different == 0) {
			t.Errorf("%s: %s", tc.name, c)
		}
	}
	wide := content([2]string{"1", "a"})
	for _, rows := range wide {
		more := "x"
		rows[0]["more"] = &more
	}
	if c := Compare(content([2]string{"1", "a"}), wide); !c.Equal() {
		t.Errorf("a column of the target's own: %s", c)
	}
	if c := Compare(wide, content([2]string{"1", "a"})); c.Different != 1 {
		t.Errorf("a column that the target lacks: %s", c)
	}
}

func TestJSONText(t *testing.T) {
	t.Parallel()
	if a, b := JSONText(`{"b": 1.50, "a": ["ö<", null]}`), JSONText(`{"a":["ö<",null],"b":1.5}`); a != b || a != `{"a":["ö<",null],"b":1.5}` {
		t.Errorf("%s, %s", a, b)
	}
	if a, b := JSONText("x"), JSONText("y"); a == b {
		t.Errorf("what is no JSON is all the same: %s", a)
	}
}
