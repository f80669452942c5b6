package exec

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/registry"
)

// keepManifests is how many of the newest manifests are kept, whatever is committed.
const keepManifests = 10

// collect removes what can never be named again: manifests older than the committed one and the newest ten, state
// objects that no kept manifest names and that no open epoch can name any more, and plans of older attempts.
func (x *Executor) collect(ctx context.Context, name string, c job.Collect) error {
	kept, err := x.keep(ctx, name, c)
	if err != nil {
		return fmt.Errorf("collect garbage of job %s: %w", name, err)
	}
	named := make(map[string]bool)
	ids := make(map[epoch.ID]bool, len(kept))
	for _, m := range kept {
		ids[m.Epoch] = true
		names(m, c.Committed, named)
	}
	return errors.Join(
		x.dropManifests(ctx, name, ids, c.Durable.Epoch),
		x.dropObjects(ctx, c, named, ids),
		x.reg.DropPlans(ctx, name, c.Fence),
	)
}

// errLate: a server of a cluster answered that is behind. From an older head the manifests since would look like garbage.
var errLate = fault.Mark(fault.Transient, errors.New("the head that was read is older than the one that asks for it"))

// keep reads the manifests that stay. They are immutable, so each is read once.
func (x *Executor) keep(ctx context.Context, name string, c job.Collect) (map[epoch.Ref]*epoch.Manifest, error) {
	v, err := x.reg.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	if v.Head == nil || v.Head.Durable == nil || v.Head.Life != c.Life {
		return nil, errors.New("the head names no durable epoch of this life")
	}
	if v.Head.Durable.Epoch < c.Durable.Epoch {
		return nil, errLate
	}
	x.mu.Lock()
	known := x.kept[name]
	x.mu.Unlock()
	kept := make(map[epoch.Ref]*epoch.Manifest)
	read := func(ref epoch.Ref) (err error) {
		if kept[ref] != nil {
			return nil
		}
		if kept[ref] = known[ref]; kept[ref] == nil {
			kept[ref], err = x.reg.Manifest(ctx, name, ref)
		}
		return err
	}
	for ref := v.Head.Durable.Ref; !ref.IsZero(); ref = kept[ref].Prev {
		err := read(ref)
		if errors.Is(err, bus.ErrNotFound) && ref.Epoch < c.Committed && len(kept) > 1 {
			delete(kept, ref) // collected before
			break
		}
		if err != nil {
			return nil, err
		}
		if ref.Epoch <= c.Committed && len(kept) >= keepManifests {
			break
		}
	}
	// Savepoints stay as they are named, without what came before them.
	for _, p := range v.Head.Savepoints {
		if err := read(p.Durable.Ref); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	x.kept[name] = kept
	x.mu.Unlock()
	return kept, nil
}

// names adds every object that a manifest needs: states always, staged pieces until they are committed.
func names(m *epoch.Manifest, committed epoch.ID, into map[string]bool) {
	for _, s := range m.Subtasks {
		for _, o := range s.State.Objects {
			into[o.Subject] = true
		}
	}
	if m.Epoch <= committed {
		return
	}
	for _, s := range m.Sinks {
		for _, p := range s.Staged {
			for _, o := range p.Objects {
				into[o.Subject] = true
			}
		}
	}
}

// dropManifests removes manifests that are not kept. One above the durable epoch may be about to be named.
func (x *Executor) dropManifests(ctx context.Context, name string, keep map[epoch.ID]bool, durable epoch.ID) error {
	all, err := x.reg.Epochs(ctx, name)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range all {
		if id <= durable && !keep[id] {
			failed = append(failed, x.reg.DropManifest(ctx, name, id))
		}
	}
	return errors.Join(failed...)
}

// group is all objects of one attempt that belong to one epoch.
type group struct {
	fence fence.Token
	epoch epoch.ID
}

// dropObjects removes state objects: garbage is only what can never be named again, that is unnamed by all kept
// manifests and of a dead attempt or of an epoch that is durable.
func (x *Executor) dropObjects(ctx context.Context, c job.Collect, named map[string]bool, kept map[epoch.ID]bool) error {
	subjects, err := x.conn.ListState(ctx, bus.StateLifePrefix(c.Life))
	if err != nil {
		return err
	}
	var failed []error
	garbage := make(map[group][]string)
	mixed := make(map[group]bool)
	for _, s := range subjects {
		_, f, e, sub, _, err := bus.ParseStateSubject(s)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		g := group{f, e}
		switch {
		case named[s], f >= c.Fence && (e > c.Durable.Epoch || c.Durable.Fence < f), sub.Vertex == registry.ManifestVertex && kept[e]:
			mixed[g] = true
		default:
			garbage[g] = append(garbage[g], s)
		}
	}
	for g, all := range garbage {
		if !mixed[g] {
			_, err := x.conn.PurgeState(ctx, bus.StateEpochPrefix(c.Life, g.fence, g.epoch))
			failed = append(failed, err)
			continue
		}
		for _, s := range all {
			_, err := x.conn.PurgeState(ctx, s)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (x *Executor) erase(ctx context.Context, name string, e job.Erase) error {
	x.mu.Lock()
	delete(x.kept, name)
	x.mu.Unlock()
	_, err := x.conn.PurgeState(ctx, bus.StateLifePrefix(e.Life))
	return errors.Join(err, x.dropStreams(ctx, name, e.Fence+1), x.conn.DropDLQ(ctx, name), x.reg.EraseJob(ctx, name), x.dropProgress(ctx, name))
}

func (x *Executor) dropProgress(ctx context.Context, name string) error {
	b, err := x.conn.Bucket(ctx, bus.ProgressBucket)
	if err != nil {
		return err
	}
	return b.PurgeSubject(ctx, bus.EscapeToken(name)+".>")
}
