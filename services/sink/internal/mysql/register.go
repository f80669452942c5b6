package mysql

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/stage"
)

// lettersTable registers the dead letters of committed epochs at the target, so that a replay knows whether the row's key
// has had a later change and whether it has been replayed. It changes in the transactions that make either true.
const lettersTable = "weir_ledger_letters"

// createLetters makes the register.
func (l ledger) createLetters(ctx context.Context, s *session) error {
	found, err := s.query(ctx, "SELECT count(*) FROM information_schema.tables WHERE table_schema = "+text(l.database)+" AND table_name = "+text(lettersTable))
	if err != nil || found[0].number(0) == 1 {
		return err
	}
	_, err = s.exec(ctx, "CREATE TABLE IF NOT EXISTS "+l.name(lettersTable)+` (job varchar(100) NOT NULL, sink varchar(40) NOT NULL, source varchar(500) NOT NULL,
		epoch bigint NOT NULL, idx bigint NOT NULL, row_key longblob, superseded bigint, replayed datetime(6), PRIMARY KEY (job, sink, source, epoch, idx))`+s.tableOptions())
	return err
}

// readOpen reads the keys whose letters no later change has overtaken; the committer keeps them up to date from then on.
func (l ledger) readOpen(ctx context.Context, s *session) (stage.OpenKeys, error) {
	found, err := s.query(ctx, "SELECT source, hex(row_key) FROM "+l.name(lettersTable)+l.mine()+" AND row_key IS NOT NULL AND superseded IS NULL AND replayed IS NULL")
	if err != nil {
		return nil, err
	}
	all := make(stage.OpenKeys)
	for _, r := range found {
		key, err := hex.DecodeString(r.text(1))
		if err != nil {
			return nil, err
		}
		all.Add(rows.TableID(r.text(0)), string(key))
	}
	return all, nil
}

// Behind is of [stage.Register].
func (a *apply) Behind(ctx context.Context, after sink.LetterID) ([]sink.LetterID, error) {
	l := a.c.ledger
	oldest, err := a.s.query(ctx, "SELECT epoch FROM "+l.name(logTable)+l.mine()+" ORDER BY epoch DESC LIMIT 1 OFFSET "+strconv.Itoa(logKept-1))
	if err != nil || len(oldest) == 0 {
		return nil, err
	}
	found, err := a.s.query(ctx, "SELECT source, epoch, idx FROM "+l.name(lettersTable)+l.mine()+" AND epoch < "+oldest[0].text(0)+
		" AND (epoch, source, idx) > ("+number(int64(after.Epoch))+", "+text(string(after.Table))+", "+strconv.Itoa(after.Index)+
		") ORDER BY epoch, source, idx LIMIT "+strconv.Itoa(stage.SweepLines))
	if err != nil {
		return nil, err
	}
	lines := make([]sink.LetterID, len(found))
	for i, r := range found {
		lines[i] = sink.LetterID{Table: rows.TableID(r.text(0)), Epoch: epoch.ID(r.number(1)), Index: int(r.number(2))}
	}
	return lines, nil
}

// Remove is of [stage.Register].
func (a *apply) Remove(ctx context.Context, lines []sink.LetterID) error {
	l := a.c.ledger
	list := make([]string, len(lines))
	for i, id := range lines {
		list[i] = "(" + text(string(id.Table)) + ", " + number(int64(id.Epoch)) + ", " + strconv.Itoa(id.Index) + ")"
	}
	_, err := a.s.exec(ctx, "DELETE FROM "+l.name(lettersTable)+l.mine()+" AND (source, epoch, idx) IN ("+strings.Join(list, ", ")+")")
	return err
}

// overtakenKeys bounds the keys of one statement.
const overtakenKeys = 1000

// register writes the lines of this commit and marks older ones that it overtakes.
func (a *apply) register(ctx context.Context) error {
	l, at := a.c.ledger, number(a.epoch)
	overtake := func(table rows.TableID, keys string) error {
		_, err := a.s.exec(ctx, "UPDATE "+l.name(lettersTable)+" SET superseded = "+at+l.mine()+" AND source = "+text(string(table))+keys+" AND superseded IS NULL")
		return err
	}
	for _, t := range a.work.Truncates {
		if err := overtake(t, ""); err != nil {
			return err
		}
	}
	for table, keys := range a.dead.Overtaken() {
		for len(keys) > 0 {
			some := keys[:min(len(keys), overtakenKeys)]
			keys = keys[len(some):]
			list := make([]string, len(some))
			for i, key := range some {
				list[i] = hexed(key)
			}
			if err := overtake(table, " AND row_key IN ("+strings.Join(list, ", ")+")"); err != nil {
				return err
			}
		}
	}
	for _, line := range a.dead.Lines() {
		key, superseded := "NULL", "NULL"
		if line.Key != nil {
			key = hexed(*line.Key)
		}
		if line.Overtaken {
			superseded = at
		}
		if _, err := a.s.exec(ctx, "INSERT INTO "+l.name(lettersTable)+" (job, sink, source, epoch, idx, row_key, superseded) VALUES ("+text(l.job)+", "+text(l.sink)+", "+
			text(string(line.Table))+", "+at+", "+strconv.Itoa(line.Index)+", "+key+", "+superseded+")"); err != nil {
			return err
		}
	}
	return nil
}

// hexed writes a literal of bytes.
func hexed(s string) string { return "x'" + hex.EncodeToString([]byte(s)) + "'" }
