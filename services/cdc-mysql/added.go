package cdcmysql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
)

// catalogTimeout bounds a question to the catalog while the log waits.
const catalogTimeout = 30 * time.Second

// filled is what rows from before a change of columns have in those that were added since the table was captured, by their names. The
// log does not say it; the catalog says what the default is now, which is what ADD COLUMN gave to the rows that were there unless
// it was changed since. What no constant tells stops the source, rather than leave the rows at the target different without a word.
func (r *reader) filled(ctx context.Context, d *described, last *schemaVersion) (map[string]string, error) {
	filled := maps.Clone(last.Filled)
	maps.DeleteFunc(filled, func(name, _ string) bool { return !d.has(name) })
	if len(last.Columns) == 0 { // the state is of a build that did not keep them
		return filled, nil
	}
	var added []string
	for i, c := range d.columns {
		masked := slices.ContainsFunc(d.masks, func(m masked) bool { return m.column == i })
		if !masked && !slices.Contains(last.Columns, c.Name) { // a value would get past the mask
			added = append(added, c.Name)
		}
	}
	if len(added) == 0 {
		return filled, nil
	}
	renamed := slices.ContainsFunc(last.Columns, func(name string) bool { return !d.has(name) })
	defaults, err := r.defaults(ctx, d)
	if err != nil {
		return nil, err
	}
	for _, name := range added {
		c, there := defaults[name]
		if !there {
			continue // it is gone again, and so are its values
		}
		value, known := c.Before(r.source.MariaDB)
		if known && value == nil {
			continue
		}
		why := "was added with a value for the rows that were there which is no constant; the log does not have it"
		if renamed {
			why = "came when others went; whether it is one of them under another name is not in the log, nor what rows that were there have in it"
		}
		if !known || renamed {
			return nil, fault.New(fault.MYSchemaChanged, r.where, fmt.Sprintf("column %q of table %s %s", name, d.name, why), "table", d.name.String())
		}
		if filled == nil {
			filled = make(map[string]string)
		}
		filled[name] = *value
	}
	return filled, nil
}

func (r *reader) defaults(ctx context.Context, d *described) (map[string]catalog.Default, error) {
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	s := sql{target: r.target}
	defer s.close()
	session, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	all, err := catalog.Defaults(ctx, session, d.name)
	if err != nil {
		return nil, r.target.Fault(err)
	}
	return all, nil
}

func (d *described) has(name string) bool {
	return slices.ContainsFunc(d.columns, func(c rows.Column) bool { return c.Name == name })
}

// names are those of the columns.
func (d *described) names() []string {
	names := make([]string, len(d.columns))
	for i, c := range d.columns {
		names[i] = c.Name
	}
	return names
}
