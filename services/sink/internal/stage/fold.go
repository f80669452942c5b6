package stage

import (
	"errors"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// Fold turns the batches of one table and schema version, in order, into the parts of a piece. truncated says that the
// table was emptied at some point and nothing before it is in the parts.
type Fold func(batches []*rows.Batch) (parts []Part, truncated bool, err error)

// Upserts keeps the last state of every key; the table must have a key.
func Upserts(batches []*rows.Batch) ([]Part, bool, error) {
	net, err := rows.Collapse(batches...)
	if errors.Is(err, rows.ErrOrphan) {
		table := string(batches[0].Schema().Table())
		return nil, false, fault.Wrap(err, fault.SinkPartialMiss, "table "+table,
			"a key changed, the source did not send all columns, and the row under the old key belongs to another writer", "table", table)
	}
	if err != nil {
		return nil, false, err
	}
	var parts []Part
	// First, because they read the target before anything of the piece has changed it.
	for _, b := range net.Moves {
		parts = append(parts, Part{Move, b})
	}
	for _, b := range net.Deletes {
		parts = append(parts, Part{Delete, b})
	}
	var fresh []Part
	for _, b := range net.Upserts {
		news, olds := divide(b, func(op rows.Op) bool { return op == rows.OpInsert || op == rows.OpRead })
		if olds != nil {
			parts = append(parts, Part{Upsert, olds})
		}
		if news != nil {
			fresh = append(fresh, Part{Fresh, news})
		}
	}
	for _, b := range net.Partials {
		parts = append(parts, Part{Partial, b})
	}
	return append(parts, fresh...), net.Truncated, nil
}

// ChangesOf is the fold of the modes that keep images: all of them, or in append mode the new ones. Every writer meets a
// truncate; the one with index 0 keeps it.
func ChangesOf(mode spec.Mode, writer int) Fold {
	keep := []rows.Op{rows.OpRead, rows.OpInsert, rows.OpUpdateAfter}
	if mode == spec.Changelog {
		keep = append(keep, rows.OpUpdateBefore, rows.OpDelete)
		if writer == 0 {
			keep = append(keep, rows.OpTruncate)
		}
	}
	return Changes(keep...)
}

// Changes keeps the rows whose operation is in keep, as they are.
func Changes(keep ...rows.Op) Fold {
	var wanted [rows.OpTruncate + 1]bool
	for _, op := range keep {
		wanted[op] = true
	}
	return func(batches []*rows.Batch) ([]Part, bool, error) {
		var parts []Part
		for _, b := range batches {
			if yes, _ := divide(b, func(op rows.Op) bool { return wanted[op] }); yes != nil {
				parts = append(parts, Part{Change, yes})
			}
		}
		return parts, false, nil
	}
}

// divide splits a batch by operation; a side without rows is nil, and a side with all of them is b itself.
func divide(b *rows.Batch, in func(rows.Op) bool) (yes, no *rows.Batch) {
	n := 0
	for i := range b.NumRows() {
		if in(b.Op(i)) {
			n++
		}
	}
	switch n {
	case 0:
		return nil, b
	case b.NumRows():
		return b, nil
	}
	var idx [2][]int32
	for i := range b.NumRows() {
		side := 1
		if in(b.Op(i)) {
			side = 0
		}
		idx[side] = append(idx[side], int32(i))
	}
	return b.Gather(idx[0]), b.Gather(idx[1])
}
