package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/rows"
)

// known are a target table's columns as the sink left them with the last schema version that it applied. They are part of
// the table's row in ownTable and change in the transaction that changes the table, so a change is made once, and what a
// new version has to be compared with is never in doubt: not after a crash, not when versions were skipped.
type known struct {
	Columns []knownColumn `json:"columns"`
}

// knownColumn is one column of the source and where it goes.
type knownColumn struct {
	ID   int    `json:"id,omitempty"` // of rows.Column; 0 when the source cannot tell
	Name string `json:"name"`         // at the source
	// Target is the column's name at the target; empty when its values are not written.
	Target string `json:"target,omitempty"`
	// Type is what the target's column would be if it were made now.
	Type string `json:"type"`
	// Gone says that the source no longer has the column: the target keeps it, and rows written since have null in it.
	Gone bool `json:"gone,omitempty"`
}

// of finds the column that the source has in c; -1 when it is new.
func (k *known) of(c rows.Column) int {
	return slices.IndexFunc(k.Columns, func(o knownColumn) bool {
		if o.Gone {
			return false
		}
		if o.ID != 0 && c.ID != 0 {
			return o.ID == c.ID
		}
		return o.Name == c.Name
	})
}

// holds finds the column that has a name at the target; -1 when none of the source's has.
func (k *known) holds(target string) int {
	return slices.IndexFunc(k.Columns, func(o knownColumn) bool { return o.Target == target })
}

func (k *known) drop(i int) { k.Columns = slices.Delete(k.Columns, i, i+1) }

// readKnown is nil when nothing was remembered yet.
func (l ledger) readKnown(ctx context.Context, q querier, source rows.TableID) (*known, error) {
	var text *string
	err := q.QueryRow(ctx, `SELECT columns::text FROM `+l.name(ownTable)+` WHERE job = $1 AND sink = $2 AND source = $3`,
		l.job, l.sink, string(source)).Scan(&text)
	if err != nil || text == nil {
		return nil, err
	}
	var k known
	if err := json.Unmarshal([]byte(*text), &k); err != nil {
		return nil, fmt.Errorf("columns of %s in %s: %w", source, l.name(ownTable), err)
	}
	return &k, nil
}

func (l ledger) writeKnown(ctx context.Context, q querier, source rows.TableID, k *known) error {
	text, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode the columns of %s: %w", source, err)
	}
	_, err = q.Exec(ctx, `UPDATE `+l.name(ownTable)+` SET columns = $4::text::jsonb WHERE job = $1 AND sink = $2 AND source = $3`,
		l.job, l.sink, string(source), string(text))
	return err
}
