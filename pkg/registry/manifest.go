package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
)

// maxInline is the largest manifest that is a value of the registry; a bigger one is a state object.
const maxInline = 256 << 10

// ManifestVertex names big manifests among the state objects; no vertex of a plan can have it.
const ManifestVertex plan.VertexID = "_manifest"

// pointer is the value of a manifest's key when the manifest itself is a state object.
type pointer struct {
	Object *epoch.Object `json:"object"`
}

// PutManifest stores a manifest create-only under (epoch, term) and says where it is. The same bytes already there are
// success. Only the leader of the term may call it. It is durable only when the head names it.
func (r *Registry) PutManifest(ctx context.Context, m *epoch.Manifest, stored []byte, ref epoch.Ref) (job.Durable, error) {
	d := job.Durable{
		Ref: ref, Key: bus.EpochKey(m.Job, m.Epoch, m.Term), Fence: m.Fence, Kind: m.Kind, At: m.Completed,
	}
	value := stored
	if len(stored) > maxInline {
		subject := bus.StateSubject(m.Life, m.Fence, m.Epoch, plan.SubtaskID{Vertex: ManifestVertex}, int(m.Term))
		o, err := r.conn.PutState(ctx, subject, stored)
		if err != nil {
			return job.Durable{}, fmt.Errorf("store manifest of epoch %d: %w", m.Epoch, err)
		}
		d.Object = &epoch.Object{Subject: o.Subject, Size: o.Size, Digest: o.Digest}
		if value, err = encode(pointer{Object: d.Object}); err != nil {
			return job.Durable{}, fmt.Errorf("store manifest of epoch %d: %w", m.Epoch, err)
		}
	}
	if err := r.once(ctx, d.Key, value); err != nil {
		return job.Durable{}, fmt.Errorf("store manifest of epoch %d: %w", m.Epoch, err)
	}
	return d, nil
}

// Manifest reads the manifest that a reference names, whoever wrote it, and checks its digest. A reference that names
// nothing is bus.ErrNotFound.
func (r *Registry) Manifest(ctx context.Context, name string, ref epoch.Ref) (m *epoch.Manifest, err error) {
	err = r.conn.Stored(ctx, func() (err error) {
		m, err = r.manifest(ctx, name, ref)
		return err
	})
	return m, err
}

// manifest is one try to read it: it may have been collected.
func (r *Registry) manifest(ctx context.Context, name string, ref epoch.Ref) (*epoch.Manifest, error) {
	pattern := strings.TrimSuffix(bus.EpochKey(name, ref.Epoch, 0), "0") + "*"
	es, err := r.reg.GetMany(ctx, pattern)
	if err != nil {
		return nil, fmt.Errorf("read manifest of epoch %d: %w", ref.Epoch, err)
	}
	for _, e := range es {
		stored, err := r.contents(ctx, e, ref.Digest)
		if err != nil {
			return nil, fmt.Errorf("read manifest of epoch %d: %w", ref.Epoch, err)
		}
		if stored != nil {
			return epoch.Decode(stored, ref)
		}
	}
	return nil, fmt.Errorf("manifest of epoch %d with digest %s: %w", ref.Epoch, ref.Digest, bus.ErrNotFound)
}

// contents returns the manifest behind a key when it has the digest, else nil. An empty digest takes any.
func (r *Registry) contents(ctx context.Context, e bus.Entry, digest string) ([]byte, error) {
	var p pointer
	if err := json.Unmarshal(e.Value, &p); err != nil {
		return nil, fault.Wrap(err, fault.RegCorrupt, e.Key, err.Error())
	}
	switch {
	case p.Object == nil && (digest == "" || epoch.Digest(e.Value) == digest):
		return e.Value, nil
	case p.Object == nil || digest != "" && p.Object.Digest != digest:
		return nil, nil
	}
	return r.conn.GetState(ctx, bus.StateRef{Subject: p.Object.Subject, Size: p.Object.Size, Digest: p.Object.Digest})
}

// Chain reads the manifests from the durable one back to the first that is not above committed, following prev; oldest
// first. committed 0 goes back to the first of the life.
func (r *Registry) Chain(ctx context.Context, name string, durable epoch.Ref, committed epoch.ID) ([]epoch.Link, error) {
	var links []epoch.Link
	for ref := durable; !ref.IsZero(); {
		m, err := r.Manifest(ctx, name, ref)
		if err != nil {
			return nil, err
		}
		links = append(links, epoch.Link{Ref: ref, Manifest: m})
		if ref.Epoch <= committed {
			break
		}
		ref = m.Prev
	}
	slices.Reverse(links)
	return links, nil
}

// History reads every manifest that is still kept, from the durable one back, oldest first: what an audit checks with
// [epoch.Chain]. It ends without an error where an older one has been collected.
func (r *Registry) History(ctx context.Context, name string, durable epoch.Ref) ([]epoch.Link, error) {
	var links []epoch.Link
	for ref := durable; !ref.IsZero(); {
		m, err := r.manifest(ctx, name, ref)
		if errors.Is(err, bus.ErrNotFound) && len(links) > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		links = append(links, epoch.Link{Ref: ref, Manifest: m})
		ref = m.Prev
	}
	slices.Reverse(links)
	return links, nil
}

// Epochs lists the ids under which any manifest of the job is stored, ascending.
func (r *Registry) Epochs(ctx context.Context, name string) ([]epoch.ID, error) {
	keys, err := r.reg.Keys(ctx, strings.TrimSuffix(bus.EpochKey(name, 0, 0), "0.0")+">")
	if err != nil {
		return nil, fmt.Errorf("list manifests of job %s: %w", name, err)
	}
	var ids []epoch.ID
	for _, k := range keys {
		parts := strings.Split(k, ".")
		n, err := strconv.ParseUint(parts[len(parts)-2], 10, 64)
		if err != nil {
			return nil, fault.Wrap(err, fault.RegCorrupt, k, err.Error())
		}
		ids = append(ids, epoch.ID(n))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
