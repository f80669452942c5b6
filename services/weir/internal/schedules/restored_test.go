package schedules

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

// registryRestored brings an older copy of the bus's directory back, cold or under processes that live on. The target
// knows more than the bus then: the job must stop with LEDGER_AHEAD, and what is visible must stay as it is.
func (s *schedule) registryRestored() {
	saved := filepath.Join(s.t.(interface{ TempDir() string }).TempDir(), "copy")
	s.restartBus(s.some(50, 500), func(dir string) {
		if err := os.CopyFS(saved, os.DirFS(dir)); err != nil {
			s.t.Fatal(err)
		}
	})
	var known epoch.ID // the copy has no epoch above it
	if d := s.attempt().Durable; d != nil {
		known = d.Epoch
	}
	s.progress(3 + s.r.IntN(3))
	s.await("commit that the copy does not know", func(*job.Head) bool {
		log := s.target.Log() // epochs without rows are none
		return len(log) > 0 && log[len(log)-1].Ref.Epoch > known
	})
	s.mayEnd.Store(true)
	s.target.SetDown(true)
	pass(100 * time.Millisecond)
	s.remember()
	before := s.target.Changes()
	cold := s.seed%2 == 0
	if cold {
		for _, p := range s.procs {
			p.crash()
		}
	}
	s.restartBus(s.some(50, 3000), func(dir string) {
		if err := os.RemoveAll(dir); err != nil {
			s.t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(saved)); err != nil {
			s.t.Fatal(err)
		}
	})
	s.fire("restored")
	s.target.SetDown(false)
	names := []string{"c1", "c2"}
	if cold {
		for name := range s.procs {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		p := s.procs[name]
		p.crash()
		s.restart(p)
	}
	h := s.await("failure", func(h *job.Head) bool { return h.Phase == job.Failed })
	if fault.Code(h.Reason.Code) != fault.JobLedgerAhead {
		s.t.Errorf("failed with %+v", h.Reason)
	}
	if after := s.target.Changes(); len(after) != len(before) {
		s.t.Errorf("%d changes were visible, %d are now", len(before), len(after))
	}
	s.judge(s.remembered())
}

// remember keeps every manifest that the registry has now.
func (s *schedule) remember() {
	h := s.attempt()
	links, err := s.reg.History(s.ctx, h.Job, h.Durable.Ref)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range links {
		s.seen[l.Ref] = l.Manifest
	}
}

// remembered is the chain up to the last committed epoch, whatever the registry has forgotten.
func (s *schedule) remembered() []epoch.Link {
	log := s.target.Log()
	s.mu.Lock()
	defer s.mu.Unlock()
	var links []epoch.Link
	for ref := log[len(log)-1].Ref; !ref.IsZero(); {
		m, ok := s.seen[ref]
		if !ok {
			break
		}
		links = append(links, epoch.Link{Ref: ref, Manifest: m})
		ref = m.Prev
	}
	slices.Reverse(links)
	if len(links) == 0 {
		s.t.Fatal("the observer has seen no manifest of the last committed epoch")
	}
	return links
}
