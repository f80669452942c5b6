package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
)

// lettersTable registers the dead letters of committed epochs at the target, so that a replay knows whether the row's key
// has had a later change and whether it has been replayed. It changes in the transactions that make either true.
const lettersTable = "weir_ledger_letters"

// createLetters makes the register.
func (l ledger) createLetters(ctx context.Context, q querier) error {
	var there bool
	if err := q.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, l.name(lettersTable)).Scan(&there); err != nil || there {
		return err
	}
	_, err := q.Exec(ctx, `CREATE TABLE IF NOT EXISTS `+l.name(lettersTable)+` (
		job text, sink text, source text, epoch bigint, idx bigint, key bytea, superseded bigint, replayed timestamptz,
		PRIMARY KEY (job, sink, source, epoch, idx))`)
	if hasState(err, uniqueViolation) {
		return nil
	}
	return err
}

// open are the keys with a letter that no later change has overtaken, by table.
type open map[rows.TableID]map[string]bool

// readOpen reads them; the committer keeps them up to date from then on.
func (l ledger) readOpen(ctx context.Context, q querier) (open, error) {
	found, err := q.Query(ctx, `SELECT source, key FROM `+l.name(lettersTable)+`
		WHERE job = $1 AND sink = $2 AND key IS NOT NULL AND superseded IS NULL AND replayed IS NULL`, l.job, l.sink)
	if err != nil {
		return nil, err
	}
	all := make(open)
	var source string
	var key []byte
	_, err = pgx.ForEachRow(found, []any{&source, &key}, func() error {
		all.add(rows.TableID(source), string(key))
		return nil
	})
	return all, err
}

func (o open) add(table rows.TableID, key string) {
	if o[table] == nil {
		o[table] = make(map[string]bool)
	}
	o[table][key] = true
}

// line is the register's line of one letter.
type line struct {
	table rows.TableID
	index int
	key   *string // nil where rows have no key or are all kept
}

// lineOf makes the line of a row and marks its key.
func (d *dead) lineOf(s *rows.Schema, b *rows.Batch, row, index int) {
	at := line{table: s.Table(), index: index}
	if d.mode == spec.Upsert {
		for i, key := range stage.KeysOf(s, b, row) {
			if i == 0 {
				at.key = &key
				d.own.add(at.table, key)
			}
			d.touch(at.table, key, index)
		}
	}
	d.lines = append(d.lines, at)
}

// touch notes that a row of this commit changes a key, or would have.
func (d *dead) touch(table rows.TableID, key string, index int) {
	if d.newest[table] == nil {
		d.newest[table] = make(map[string]int)
	}
	if was, ok := d.newest[table][key]; !ok || index > was {
		d.newest[table][key] = index
	}
}

// watches reports whether a later change of a key of the table matters to any letter.
func (d *dead) watches(table rows.TableID, key string) bool {
	return d.open[table][key] || d.own[table][key]
}

// register writes the lines of this commit and marks older ones that it overtakes.
func (a *apply) register(ctx context.Context) error {
	d, l := a.dead, a.c.ledger
	var b pgx.Batch
	for _, t := range a.work.Truncates {
		b.Queue(`UPDATE `+l.name(lettersTable)+` SET superseded = $4
			WHERE job = $1 AND sink = $2 AND source = $3 AND superseded IS NULL`, l.job, l.sink, string(t), a.epoch)
	}
	for table, newest := range d.newest {
		var keys [][]byte
		for key := range newest {
			if d.open[table][key] {
				keys = append(keys, []byte(key))
			}
		}
		if len(keys) > 0 {
			b.Queue(`UPDATE `+l.name(lettersTable)+` SET superseded = $4
				WHERE job = $1 AND sink = $2 AND source = $3 AND key = ANY ($5) AND superseded IS NULL`,
				l.job, l.sink, string(table), a.epoch, keys)
		}
	}
	for _, at := range d.lines {
		var key []byte
		var superseded *int64
		if at.key != nil {
			key = []byte(*at.key)
			if d.newest[at.table][*at.key] > at.index {
				superseded = &a.epoch
			}
		}
		b.Queue(`INSERT INTO `+l.name(lettersTable)+` (job, sink, source, epoch, idx, key, superseded)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, l.job, l.sink, string(at.table), a.epoch, at.index, key, superseded)
	}
	if b.Len() == 0 {
		return nil
	}
	return a.s.SendBatch(ctx, &b).Close()
}

// registered brings what the committer knows of the register up to a commit that went through.
func (d *dead) registered(truncates []rows.TableID) {
	for _, table := range truncates {
		delete(d.open, table)
	}
	for table, newest := range d.newest {
		for key := range newest {
			delete(d.open[table], key)
		}
	}
	for _, at := range d.lines {
		if at.key != nil && d.newest[at.table][*at.key] <= at.index {
			d.open.add(at.table, *at.key)
		}
	}
}
