package cdc

import "slices"

// handOver gives the log, with everything that says where it begins to count, to its reader.
func (a *Assigner) handOver() {
	m := followMessage{log: a.log, only: a.cfg.Mode == Only}
	marks := false
	for _, t := range a.tables {
		if !t.fresh {
			m.tables = append(m.tables, followed{t.ID, t.pure, t.first})
			marks = marks || !t.pure
		}
	}
	if marks {
		for _, s := range a.sealed {
			a.tell(LogReader, marksMessage{s.Data})
		}
		if len(a.tail) > 0 {
			a.tell(LogReader, marksMessage{encodeSegment(a.tail)})
		}
	}
	a.tell(LogReader, m)
	a.told, a.begun, a.log = true, true, nil
}

// pause asks the reader of the log to stop.
func (a *Assigner) pause() {
	a.tell(LogReader, pauseMessage{a.again})
	a.pausing = append(a.pausing, a.again...)
	a.again = nil
	a.stage = stagePause
}

// paused takes the word of the reader of the log: it stands still, and these tables are empty at the sinks, or will be
// before anything that comes after the next epoch.
func (a *Assigner) paused(ids []TableID) {
	if a.stage != stageFollow && a.stage != stagePause {
		return
	}
	named := func(p pausing) bool { return slices.Contains(ids, p.table) }
	a.again, a.pausing = slices.DeleteFunc(a.again, named), slices.DeleteFunc(a.pausing, named)
	for _, id := range ids {
		if t := a.table(id); t != nil {
			a.reset(t)
			a.forget(id)
		}
	}
	switch {
	case len(a.again) > 0:
		a.pause()
	case len(a.pausing) > 0:
		a.stage = stagePause
	default:
		a.stage, a.cover, a.told = stageClear, 0, false
	}
}

// passed ends the catch-up of a table.
func (a *Assigner) passed(id TableID) {
	t := a.table(id)
	if t == nil || a.stage.copying() || a.stage == stageClear {
		return
	}
	t.pure, t.first = true, a.next
	a.forget(id)
	if !slices.ContainsFunc(a.tables, func(t *table) bool { return !t.pure && !t.fresh }) {
		a.sealed, a.tail, a.tailed = nil, nil, 0
	}
}

// forget drops what the tail has of a table's earlier copies. Segments keep theirs; the numbers tell.
func (a *Assigner) forget(id TableID) {
	a.tail = slices.DeleteFunc(a.tail, func(f Finished) bool { return f.Table == id })
}

// Again asks that a table be copied anew: the log pauses, the table is emptied at the sinks, its chunks are read, and the
// log goes on with their marks. It waits for a first copy that is under way. It reports whether there is such a table.
func (a *Assigner) Again(id TableID) bool {
	t := a.table(id)
	if t == nil {
		return false
	}
	waits := func(p pausing) bool { return p.table == id }
	if !slices.ContainsFunc(a.again, waits) && !slices.ContainsFunc(a.pausing, waits) {
		a.again = append(a.again, pausing{table: id, truncate: !t.fresh})
	}
	return true
}

// Tables makes the tables be exactly these, in every state. What is new is copied, unless nothing is; what is gone is
// forgotten, with all its chunks. A reader that has the log learns of it when it next gets the log: an adapter whose tables
// change while it runs has to tell it by itself. A table that was removed and comes back is new, see [Table.Sent]. Estimates
// and names of known tables are taken over. It reports whether the log has to stand still, as soon as a reader has it, until
// it is asked to pause: before that no change of a new table may be emitted.
func (a *Assigner) Tables(want []Table) (stands bool) {
	kept := make([]*table, 0, len(want))
	for _, w := range want {
		t := a.table(w.ID)
		if t != nil {
			t.Name, t.RowBytes = w.Name, w.RowBytes
			kept = append(kept, t)
			continue
		}
		t = &table{Table: w, pure: true}
		t.Sent = false
		kept = append(kept, t)
		switch {
		case a.cfg.Mode == Never:
		case (a.stage.copying() || a.stage == stageClear) && !w.Sent:
			a.reset(t)
			if a.stage != stageClear {
				a.stage, a.settling, a.cover = stageSettle, false, 0
			}
		default:
			t.fresh, t.pure = true, false
			a.again = append(a.again, pausing{table: w.ID, truncate: w.Sent})
		}
	}
	a.tables = kept
	gone := func(id TableID) bool { return a.table(id) == nil }
	a.queue = slices.DeleteFunc(a.queue, func(w work) bool { return gone(w.chunk.Table) })
	a.tail = slices.DeleteFunc(a.tail, func(f Finished) bool { return gone(f.Table) })
	a.again = slices.DeleteFunc(a.again, func(p pausing) bool { return gone(p.table) })
	for id := range a.running {
		if gone(id.Table) {
			delete(a.running, id)
		}
	}
	if a.asked && gone(a.asking) {
		a.asked = false
	}
	return len(a.again) > 0
}

// Abandon asks for what [Assigner.Again] does, of a table whose present copy is not to be read to its end: chunks of it are not
// handed out any more, and no change of it counts until the table is empty. It is called after a restore, before chunks are handed
// out, and the log has to stand still as for a new table. It reports whether there is such a table.
func (a *Assigner) Abandon(id TableID) bool {
	if !a.Again(id) {
		return false
	}
	t := a.table(id)
	if t.fresh || !a.rest(t) {
		return true
	}
	a.unqueue(id)
	a.reset(t)
	t.split, t.fresh = splitNone, true
	return true
}

// rest reports whether chunks of a table's present copy are still to be read.
func (a *Assigner) rest(t *table) bool {
	return t.split == splitWaiting || t.split == splitRunning || slices.ContainsFunc(a.queue, func(w work) bool { return w.chunk.Table == t.ID })
}

func (a *Assigner) unqueue(id TableID) {
	a.queue = slices.DeleteFunc(a.queue, func(w work) bool { return w.chunk.Table == id })
}

// Unread reports whether chunks of a table are still to be read, and whether any of the copy that they are of was: then they are to
// be read in a form that goes with what was emitted. It is asked after a restore, before chunks are handed out.
func (a *Assigner) Unread(id TableID) (unread, begun bool) {
	t := a.table(id)
	switch {
	case t == nil:
		return false, false
	case !a.rest(t):
		return t.fresh || slices.ContainsFunc(a.again, func(p pausing) bool { return p.table == id }), false
	}
	return true, t.done > 0 || slices.ContainsFunc(a.queue, func(w work) bool { return w.chunk.Table == id && w.resume != nil })
}

// Recut forgets how a table was cut into chunks of which none was read: its key may be another by now.
func (a *Assigner) Recut(now Table) {
	t := a.table(now.ID)
	if t == nil {
		return
	}
	t.Keyless, t.RowBytes = now.Keyless, now.RowBytes
	if !a.rest(t) {
		return // cut once the log stands still
	}
	a.unqueue(now.ID)
	a.reset(t)
}

// Renew begins anew with another log, one that does not have what lies between the end of the old one and its own beginning:
// every table is emptied at the sinks and copied, however far its copy was, and the log goes on from there. It is called
// after a restore, before anything else; log is the adapter's state of the new log.
func (a *Assigner) Renew(log []byte) {
	a.queue, a.tail, a.tailed, a.sealed, a.pausing = nil, nil, 0, nil, nil
	clear(a.running)
	a.again = make([]pausing, len(a.tables))
	for i, t := range a.tables {
		a.reset(t)
		t.split, t.fresh = splitNone, true
		a.again[i] = pausing{table: t.ID, truncate: true}
	}
	a.log, a.begun, a.told, a.asked = log, true, false, false
	a.stage, a.settling, a.cover = stageFollow, false, 0
}
