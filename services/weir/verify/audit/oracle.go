package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pglogrepl"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/verdict"
)

// Oracle is a second reader of a source's log: a publication and a slot that no job knows of.
type Oracle struct {
	url, name string
}

// OpenOracle begins to keep what happens to the tables of a schema.
func OpenOracle(ctx context.Context, url, schema string) (*Oracle, error) {
	conn, err := session(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// By name: a whole schema may be published by superusers only.
	var tables string
	if err := conn.QueryRow(ctx, `SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') FROM pg_tables WHERE schemaname = $1`,
		schema).Scan(&tables); err != nil {
		return nil, fmt.Errorf("open oracle: list the tables of %s: %w", schema, err)
	}
	o := &Oracle{url: url, name: "oracle_" + schema}
	for _, sql := range []string{
		"CREATE PUBLICATION " + o.name + " FOR TABLE " + tables,
		"SELECT pg_create_logical_replication_slot('" + o.name + "', 'pgoutput')",
	} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("open oracle: %w", err)
		}
	}
	return o, nil
}

// Close gives the slot and the publication up. They would keep the source's log for ever.
func (o *Oracle) Close(ctx context.Context) error {
	conn, err := session(ctx, o.url)
	if err != nil {
		return fmt.Errorf("close oracle: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, slot := conn.Exec(ctx, "SELECT pg_drop_replication_slot($1)", o.name)
	_, publication := conn.Exec(ctx, "DROP PUBLICATION IF EXISTS "+o.name)
	if err := errors.Join(slot, publication); err != nil {
		return fmt.Errorf("close oracle: %w", err)
	}
	return nil
}

// Changes reads everything that was committed since the oracle was opened, in the order of the log, as a changelog has
// it: an update of a key is a delete and an insert.
func (o *Oracle) Changes(ctx context.Context) ([]Change, error) {
	conn, err := session(ctx, o.url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	messages, err := conn.Query(ctx, `SELECT data FROM pg_logical_slot_peek_binary_changes($1, NULL, NULL,
		'proto_version', '1', 'publication_names', $2)`, o.name, o.name)
	if err != nil {
		return nil, fmt.Errorf("read oracle: %w", err)
	}
	defer messages.Close()
	r := logReader{relations: make(map[uint32]*pglogrepl.RelationMessage)}
	for messages.Next() {
		var data []byte
		if err := messages.Scan(&data); err != nil {
			return nil, fmt.Errorf("read oracle: %w", err)
		}
		m, err := pglogrepl.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("read oracle: %w", err)
		}
		if err := r.take(m); err != nil {
			return nil, fmt.Errorf("read oracle: %w", err)
		}
	}
	return r.changes, messages.Err()
}

// logReader turns messages of pgoutput into changes.
type logReader struct {
	relations map[uint32]*pglogrepl.RelationMessage
	changes   []Change
	txn       uint64
	ord       uint32
}

func (r *logReader) take(m pglogrepl.Message) error {
	switch m := m.(type) {
	case *pglogrepl.BeginMessage:
		r.txn, r.ord = uint64(m.FinalLSN), 0
	case *pglogrepl.RelationMessage:
		r.relations[m.RelationID] = m
	case *pglogrepl.InsertMessage:
		return r.add(rows.OpInsert, m.RelationID, m.Tuple, false)
	case *pglogrepl.UpdateMessage:
		return r.update(m)
	case *pglogrepl.DeleteMessage:
		return r.add(rows.OpDelete, m.RelationID, m.OldTuple, m.OldTupleType == pglogrepl.DeleteMessageTupleTypeKey)
	case *pglogrepl.TruncateMessage:
		return errors.New("a truncate, which no load makes")
	}
	return nil // commits, types, origins
}

func (r *logReader) update(m *pglogrepl.UpdateMessage) error {
	changed, err := r.keyChanged(m)
	if err != nil {
		return err
	}
	if !changed {
		return r.add(rows.OpUpdateAfter, m.RelationID, m.NewTuple, false)
	}
	if err := r.add(rows.OpDelete, m.RelationID, m.OldTuple, m.OldTupleType == pglogrepl.UpdateMessageTupleTypeKey); err != nil {
		return err
	}
	return r.add(rows.OpInsert, m.RelationID, m.NewTuple, false)
}

// keyChanged: the old row is there also when the key only might have changed, or with REPLICA IDENTITY FULL.
func (r *logReader) keyChanged(m *pglogrepl.UpdateMessage) (bool, error) {
	if m.OldTuple == nil {
		return false, nil
	}
	rel, err := r.relation(m.RelationID)
	if err != nil {
		return false, err
	}
	before, err := keyOf(rel, m.OldTuple)
	if err != nil {
		return false, err
	}
	after, err := keyOf(rel, m.NewTuple)
	return before != after, err
}

func (r *logReader) relation(id uint32) (*pglogrepl.RelationMessage, error) {
	if rel, ok := r.relations[id]; ok {
		return rel, nil
	}
	return nil, fmt.Errorf("a change of relation %d, which was not described", id)
}

// add takes one row. keyOnly says that the tuple holds nothing but the key, the rest being null for want of a value.
func (r *logReader) add(op rows.Op, id uint32, t *pglogrepl.TupleData, keyOnly bool) error {
	rel, err := r.relation(id)
	if err != nil {
		return err
	}
	key, err := keyOf(rel, t)
	if err != nil {
		return err
	}
	c := Change{
		Change: verdict.Change{Table: rel.Namespace + "." + rel.RelationName, Key: key, Op: op, Txn: r.txn, Ord: r.ord},
		Cells:  make(map[string]*string),
	}
	r.ord++
	for i, column := range rel.Columns {
		if keyOnly && column.Flags&1 == 0 {
			continue
		}
		switch cell := t.Columns[i]; cell.DataType {
		case pglogrepl.TupleDataTypeNull:
			c.Cells[column.Name] = nil
		case pglogrepl.TupleDataTypeText:
			text := string(cell.Data)
			c.Cells[column.Name] = &text
		case pglogrepl.TupleDataTypeToast: // unchanged, not sent
		default:
			return fmt.Errorf("a cell of kind %q in %s", cell.DataType, c.Table)
		}
	}
	r.changes = append(r.changes, c)
	return nil
}

// keyOf names a row by the columns of its replica identity.
func keyOf(rel *pglogrepl.RelationMessage, t *pglogrepl.TupleData) (string, error) {
	var cells []*string
	for i, column := range rel.Columns {
		if column.Flags&1 == 0 {
			continue
		}
		text := string(t.Columns[i].Data)
		cells = append(cells, &text)
	}
	if len(cells) == 0 {
		return "", fmt.Errorf("table %s.%s has no key", rel.Namespace, rel.RelationName)
	}
	return keyText(cells)
}
