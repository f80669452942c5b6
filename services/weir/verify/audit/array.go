package audit

import "strings"

// ArrayText is an array of texts, nil for null, as PostgreSQL writes it.
func ArrayText(elems []*string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range elems {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case e == nil:
			b.WriteString("NULL")
		case *e == "" || strings.EqualFold(*e, "null") || strings.ContainsAny(*e, "{}\",\\ \t\n\r\v\f"):
			b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(*e) + `"`)
		default:
			b.WriteString(*e)
		}
	}
	b.WriteByte('}')
	return b.String()
}
