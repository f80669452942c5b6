package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/core"
)

// readKnown reads what the sink has left of a table's columns; nil when nothing was remembered yet. It is part of the table's row
// in ownTable and changes in the transaction that changes the table, so a change is made once.
func (l ledger) readKnown(ctx context.Context, q querier, source rows.TableID) (*core.Known, error) {
	var text *string
	err := q.QueryRow(ctx, `SELECT columns::text FROM `+l.name(ownTable)+` WHERE job = $1 AND sink = $2 AND source = $3`,
		l.job, l.sink, string(source)).Scan(&text)
	if err != nil || text == nil {
		return nil, err
	}
	var k core.Known
	if err := json.Unmarshal([]byte(*text), &k); err != nil {
		return nil, fmt.Errorf("columns of %s in %s: %w", source, l.name(ownTable), err)
	}
	return &k, nil
}

func (l ledger) writeKnown(ctx context.Context, q querier, source rows.TableID, k *core.Known) error {
	text, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode the columns of %s: %w", source, err)
	}
	_, err = q.Exec(ctx, `UPDATE `+l.name(ownTable)+` SET columns = $4::text::jsonb WHERE job = $1 AND sink = $2 AND source = $3`,
		l.job, l.sink, string(source), string(text))
	return err
}
