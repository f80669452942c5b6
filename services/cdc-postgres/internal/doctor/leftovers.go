package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// Life is a life of a job that still needs what it made.
type Life struct{ Job, Life string }

// needed reports whether a name is one of Weir's, and whether a life still needs what has it.
func needed(name string, lives []Life) (ours, needed bool) {
	life, ours := core.LifeOf(name)
	return ours, ours && slices.ContainsFunc(lives, func(l Life) bool { return l.Life == life })
}

// Leftovers lists slots and publications of this database that no life needs any more. asked is false when nobody could
// say which lives there are.
func (f *Facts) Leftovers(where string, lives []Life, asked bool) []preflight.Finding {
	c := checker{group: where}
	ours, left := 0, 0
	leave := func(kind, name, found string, drop ...string) {
		left++
		why := "this mesh has no job that needs it"
		if kind == "slot" {
			why += "; the server keeps log for it without end"
		}
		remedy := preflight.Remedy{SQL: drop, Database: f.Database, Advice: "Only when no job of another mesh uses it."}
		if !asked {
			why = "whether a job needs it cannot be known: no mesh was asked"
			remedy.Advice = "Only when no job uses it; with --nats or NATS_URL the mesh is asked."
		}
		c.warn("leftover_"+kind, name, found, why, remedy)
	}
	for _, s := range f.Slots {
		made, wanted := needed(s.Name, lives)
		if s.Database != f.Database || !made {
			continue
		}
		if s.ActivePID != 0 || wanted {
			ours++ // what somebody reads is no leftover, whoever it is
			continue
		}
		leave("slot", s.Name, fmt.Sprintf("nobody reads it, it keeps %s of log, wal_status %s", size(s.Retained), s.WALStatus),
			"SELECT pg_drop_replication_slot("+literal(s.Name)+");")
	}
	for _, name := range f.Publications {
		if made, wanted := needed(name, lives); !made || wanted || f.readBySomebody(name) {
			continue
		}
		leave("publication", name, "it belongs to a job of Weir", "DROP PUBLICATION "+identifier(name)+";")
	}
	if left == 0 {
		c.ok("leftovers", "none; %d slots with a name of Weir are in use", ours)
	}
	return c.findings
}

// readBySomebody reports whether a slot that goes with a publication is being read.
func (f *Facts) readBySomebody(publication string) bool {
	for _, s := range f.Slots {
		if s.Database == f.Database && s.ActivePID != 0 && strings.HasPrefix(s.Name, publication) {
			return true
		}
	}
	return false
}
