package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// Life is a life of a job that still needs what it made.
type Life struct{ Job, Life string }

// made is the form of the names that Weir gives: weir_<job>_<life>, and for slots the fence.
var made = regexp.MustCompile(`^weir_[a-z0-9_]+_[0-9a-f]{16}(_[0-9]+)?$`)

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
		if s.Database != f.Database || !made.MatchString(s.Name) {
			continue
		}
		if s.ActivePID != 0 || slices.ContainsFunc(lives, func(l Life) bool { return core.OwnsSlot(l.Job, l.Life, s.Name) }) {
			ours++ // what somebody reads is no leftover, whoever it is
			continue
		}
		leave("slot", s.Name, fmt.Sprintf("nobody reads it, it keeps %s of log, wal_status %s", size(s.Retained), s.WALStatus),
			"SELECT pg_drop_replication_slot("+literal(s.Name)+");")
	}
	for _, name := range f.Publications {
		if !made.MatchString(name) {
			continue
		}
		if f.readBySomebody(name) || slices.ContainsFunc(lives, func(l Life) bool { return core.BaseName(l.Job, l.Life) == name }) {
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
