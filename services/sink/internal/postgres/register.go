package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
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

// readOpen reads them; the committer keeps them up to date from then on.
func (l ledger) readOpen(ctx context.Context, q querier) (stage.OpenKeys, error) {
	found, err := q.Query(ctx, `SELECT source, key FROM `+l.name(lettersTable)+`
		WHERE job = $1 AND sink = $2 AND key IS NOT NULL AND superseded IS NULL AND replayed IS NULL`, l.job, l.sink)
	if err != nil {
		return nil, err
	}
	all := make(stage.OpenKeys)
	var source string
	var key []byte
	_, err = pgx.ForEachRow(found, []any{&source, &key}, func() error {
		all.Add(rows.TableID(source), string(key))
		return nil
	})
	return all, err
}

// Behind is of [stage.Register].
func (a *apply) Behind(ctx context.Context, after sink.LetterID) ([]sink.LetterID, error) {
	l := a.c.ledger
	found, err := a.s.Query(ctx, `SELECT source, epoch, idx FROM `+l.name(lettersTable)+`
		WHERE job = $1 AND sink = $2 AND (epoch, source, idx) > ($3, $4, $5) AND epoch <
			(SELECT epoch FROM `+l.name(logTable)+` WHERE job = $1 AND sink = $2 ORDER BY epoch DESC LIMIT 1 OFFSET $6)
		ORDER BY epoch, source, idx LIMIT $7`,
		l.job, l.sink, int64(after.Epoch), string(after.Table), after.Index, logKept-1, stage.SweepLines)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(r pgx.CollectableRow) (id sink.LetterID, err error) {
		var at int64
		err = r.Scan(&id.Table, &at, &id.Index)
		id.Epoch = epoch.ID(at)
		return id, err
	})
}

// Remove is of [stage.Register].
func (a *apply) Remove(ctx context.Context, lines []sink.LetterID) error {
	l := a.c.ledger
	tables, epochs, indexes := make([]string, len(lines)), make([]int64, len(lines)), make([]int64, len(lines))
	for i, id := range lines {
		tables[i], epochs[i], indexes[i] = string(id.Table), int64(id.Epoch), int64(id.Index)
	}
	_, err := a.s.Exec(ctx, `DELETE FROM `+l.name(lettersTable)+` AS l USING unnest($3::text[], $4::bigint[], $5::bigint[]) AS g (source, epoch, idx)
		WHERE l.job = $1 AND l.sink = $2 AND l.source = g.source AND l.epoch = g.epoch AND l.idx = g.idx`, l.job, l.sink, tables, epochs, indexes)
	return err
}

// register writes the lines of this commit and marks older ones that it overtakes.
func (a *apply) register(ctx context.Context) error {
	d, l := a.dead, a.c.ledger
	var b pgx.Batch
	for _, t := range a.work.Truncates {
		b.Queue(`UPDATE `+l.name(lettersTable)+` SET superseded = $4
			WHERE job = $1 AND sink = $2 AND source = $3 AND superseded IS NULL`, l.job, l.sink, string(t), a.epoch)
	}
	for table, keys := range d.Overtaken() {
		all := make([][]byte, len(keys))
		for i, key := range keys {
			all[i] = []byte(key)
		}
		b.Queue(`UPDATE `+l.name(lettersTable)+` SET superseded = $4
			WHERE job = $1 AND sink = $2 AND source = $3 AND key = ANY ($5) AND superseded IS NULL`,
			l.job, l.sink, string(table), a.epoch, all)
	}
	for _, at := range d.Lines() {
		var key []byte
		var superseded *int64
		if at.Key != nil {
			key = []byte(*at.Key)
		}
		if at.Overtaken {
			superseded = &a.epoch
		}
		b.Queue(`INSERT INTO `+l.name(lettersTable)+` (job, sink, source, epoch, idx, key, superseded)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, l.job, l.sink, string(at.Table), a.epoch, at.Index, key, superseded)
	}
	if b.Len() == 0 {
		return nil
	}
	return a.s.SendBatch(ctx, &b).Close()
}
