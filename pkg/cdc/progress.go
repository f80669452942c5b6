package cdc

import (
	"slices"
	"strings"
)

// Counts are an assigner's figures for progress.
type Counts struct {
	// Assigned counts the chunks handed out by this attempt, Completed those finished of the present copies.
	Assigned, Completed uint64
	// Running counts chunks at readers, Prepared those at hand and not handed out.
	Running, Prepared uint64
	// Unsplit counts the tables of which not every chunk is known yet.
	Unsplit uint64
}

// Counts returns the present figures.
func (a *Assigner) Counts() Counts {
	c := Counts{Assigned: a.assigned, Running: uint64(len(a.running)), Prepared: uint64(len(a.queue))}
	for _, t := range a.tables {
		c.Completed += t.done
		if t.split == splitWaiting || t.split == splitRunning {
			c.Unsplit++
		}
	}
	return c
}

// TableProgress is how far one table is.
type TableProgress struct {
	Table
	Lifecycle Lifecycle
	// Rows and Chunks count what was read in the present copy.
	Rows, Chunks uint64
	// Running and Prepared count its chunks at readers and at hand; Split says that there will be no others unless one is halved.
	Running, Prepared uint64
	Split             bool
}

// Progress returns the tables in the order of reading.
func (a *Assigner) Progress() []TableProgress {
	prepared, running := make(map[TableID]uint64), make(map[TableID]uint64)
	for i := range a.queue {
		prepared[a.queue[i].chunk.Table]++
	}
	for c := range a.running {
		running[c.Table]++
	}
	all := make([]TableProgress, 0, len(a.tables))
	for _, t := range a.tables {
		p := TableProgress{
			Table: t.Table, Lifecycle: CatchUp, Rows: t.rows, Chunks: t.done, Running: running[t.ID], Prepared: prepared[t.ID],
			Split: t.split != splitWaiting && t.split != splitRunning,
		}
		switch {
		case t.pure:
			p.Lifecycle = Incremental
		case t.fresh || !p.Split || p.Running+p.Prepared > 0:
			p.Lifecycle = Snapshot
		}
		all = append(all, p)
	}
	return all
}

// Lifecycle is where the source is. While tables are read, or the log stands still for them, it is SNAPSHOT.
func (a *Assigner) Lifecycle() Lifecycle {
	if a.stage.copying() || a.stage == stageClear {
		return Snapshot
	}
	for _, t := range a.tables {
		if !t.pure {
			return CatchUp
		}
	}
	return Incremental
}

// Ended reports that a source of mode Only has nothing more to give.
func (a *Assigner) Ended() bool {
	return a.cfg.Mode == Only && a.told && a.Lifecycle() == Incremental && len(a.again) == 0
}

// ActiveChunk is a chunk at a reader, by the word that the reader's report calls it.
type ActiveChunk struct{ ID, Table string }

// Active returns the chunks at readers by id, at most limit of them; cut says that there are more.
func (a *Assigner) Active(limit int) (active []ActiveChunk, cut bool) {
	names := make(map[TableID]string, len(a.tables))
	for _, t := range a.tables {
		names[t.ID] = t.Name
	}
	for id := range a.running {
		active = append(active, ActiveChunk{ID: id.String(), Table: names[id.Table]})
	}
	slices.SortFunc(active, func(a, b ActiveChunk) int { return strings.Compare(a.ID, b.ID) })
	if len(active) > limit {
		return active[:limit], true
	}
	return active, false
}

// ReadChunk is a chunk that is read, with its own mark.
type ReadChunk struct {
	ActiveChunk
	Mark []byte
}

// Newest returns the chunks of the present copies that were finished last, by id, at most limit of them: of those whose marks are
// still needed and are in no segment.
func (a *Assigner) Newest(limit int) []ReadChunk {
	var all []ReadChunk
	for i := len(a.tail) - 1; i >= 0 && len(all) < limit; i-- {
		f := &a.tail[i]
		if t := a.table(f.Table); t != nil && f.Number >= t.first {
			all = append(all, ReadChunk{ActiveChunk{ID: f.String(), Table: t.Name}, f.Mark})
		}
	}
	slices.SortFunc(all, func(a, b ReadChunk) int { return strings.Compare(a.ID, b.ID) })
	return all
}
