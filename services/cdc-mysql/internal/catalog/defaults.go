package catalog

import (
	"context"
	"regexp"
	"strings"

	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// Default is what a column has in rows that say nothing of it.
type Default struct {
	// Type is the server's word for the type, without its length.
	Type     string
	Nullable bool
	// Text is the server's text of the default; nil for none. Extra tells defaults that are computed from constants.
	Text  *string
	Extra string
}

// Defaults reads those of a table's columns, by their names.
func Defaults(ctx context.Context, s *server.Session, name core.Name) (map[string]Default, error) {
	all := make(map[string]Default)
	err := s.Query(ctx, "SELECT column_name, data_type, is_nullable, column_default, extra FROM information_schema.columns WHERE table_schema = "+
		Text(name.Schema)+" AND table_name = "+Text(name.Table), func(c [][]byte) error {
		d := Default{Type: strings.ToLower(string(c[1])), Nullable: string(c[2]) == "YES", Extra: strings.ToUpper(string(c[4]))}
		if c[3] != nil {
			d.Text = new(string(c[3]))
		}
		all[string(c[0])] = d
		return nil
	})
	return all, err
}

// Constants as the servers write them.
var (
	integer  = regexp.MustCompile(`^-?[0-9]+$`)
	exact    = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)
	inexact  = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	date     = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`)
	datetime = regexp.MustCompile(`^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]) [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$`)
	yearZero = "0000"
)

// Before is the value that ADD COLUMN gave to the rows that were there: null, or a text; unknown when the catalog does not tell a
// constant, or the text of the type is not that of a copy.
func (d Default) Before(maria bool) (value *string, known bool) {
	if d.Extra != "" && d.Extra != "INVISIBLE" {
		return nil, false // computed, or counted
	}
	text := d.Text
	quoted := false
	if maria && text != nil {
		if *text == "NULL" {
			text = nil
		} else if inner, ok := strings.CutPrefix(*text, "'"); ok {
			if inner, ok = strings.CutSuffix(inner, "'"); !ok || strings.Contains(inner, `\`) {
				return nil, false
			}
			text, quoted = new(strings.ReplaceAll(inner, "''", "'")), true
		}
	}
	if text == nil && d.Nullable {
		return nil, true
	}
	var form *regexp.Regexp
	switch d.Type {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		form = integer
	case "decimal":
		form = exact
	case "float", "double":
		form = inexact
	case "date":
		form = date
	case "datetime":
		form = datetime
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		if text == nil {
			return new(""), true
		}
		return text, !maria || quoted
	case "enum", "set":
		return text, text != nil && (!maria || quoted)
	default: // of bits, times of a zone, documents: their text here is not that of a copy
		return nil, false
	}
	if text == nil { // NOT NULL without a default: the zero of the type
		return new("0"), form != date && form != datetime
	}
	return text, form.MatchString(*text) && ((form != date && form != datetime) || !strings.HasPrefix(*text, yearZero))
}
