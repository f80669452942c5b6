package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/durable"
)

// committer makes epochs part of the directory. It is owned by one goroutine.
type committer struct {
	place
	cfg               sink.Config
	manifests, claims string
	// newest is the newest manifest, known since the claim: whoever makes another has claimed with a higher fence before.
	newest *Manifest
	swept  bool
}

// claimName is the claim of an attempt. Its bytes say nothing: that it exists is the claim.
func claimName(f fence.Token, life string) string { return fmt.Sprintf("%s.%s", f, life) }

// owner reads the claims: the highest fence of this life. A claim of another life is foreign at once.
func (c *committer) owner() (core.Row, error) {
	entries, err := os.ReadDir(c.claims)
	if err != nil {
		return core.Row{}, err
	}
	var row core.Row
	for _, e := range entries {
		digits, life, _ := strings.Cut(e.Name(), ".")
		f, err := fence.ParseToken(digits)
		if err != nil {
			continue
		}
		if row.Life == "" || life != c.cfg.Life || f > row.Fence {
			row.Life, row.Fence = life, f
		}
		if life != c.cfg.Life {
			break
		}
	}
	return row, nil
}

// ledger is the row that claims and the newest manifest make up.
func (c *committer) ledger() (core.Row, error) {
	row, err := c.owner()
	if err != nil {
		return core.Row{}, err
	}
	if c.newest == nil {
		if c.newest, err = newestManifest(c.manifests); err != nil {
			return core.Row{}, err
		}
	}
	m := c.newest
	if m.Epoch == 0 {
		return row, nil
	}
	row.Ref = m.Ref
	if m.Life != c.cfg.Life || m.Job != c.cfg.Job || m.Sink != c.cfg.Sink.Name {
		row.Life = m.Life + " of " + m.Job + "." + m.Sink
	}
	if row.Fence == 0 {
		row.Life, row.Fence = m.Life, m.Fence // somebody removed the claims
	}
	return row, nil
}

// Claim makes the attempt's claim file. The highest one is the owner; no lock is needed, and none can be held by a zombie.
func (c *committer) Claim(ctx context.Context) (job.LedgerRow, error) {
	found, err := c.ledger()
	if err != nil {
		return job.LedgerRow{}, c.translate(err)
	}
	if err := c.refusal(core.Claim(found, c.cfg.Life, c.cfg.Fence), found, sink.Commit{}); err != nil {
		return job.LedgerRow{}, err
	}
	own := claimName(c.cfg.Fence, c.cfg.Life)
	if err := createOnly(filepath.Join(c.claims, own), nil, c.unique("claim")); err != nil && !errors.Is(err, fs.ErrExist) {
		return job.LedgerRow{}, c.translate(err)
	}
	c.newest = nil // a zombie may have published up to the moment of the claim
	now, err := c.ledger()
	if err != nil {
		return job.LedgerRow{}, c.translate(err)
	}
	if err := c.refusal(core.Claim(now, c.cfg.Life, c.cfg.Fence), now, sink.Commit{}); err != nil {
		return job.LedgerRow{}, err
	}
	if err := c.dropClaims(own); err != nil {
		return job.LedgerRow{}, c.translate(err)
	}
	return job.LedgerRow{Life: c.cfg.Life, Ref: now.Ref, Fence: found.Fence}, ctx.Err()
}

// dropClaims removes claims below one's own; the highest one stays, so nothing is decided by it.
func (c *committer) dropClaims(own string) error {
	entries, err := os.ReadDir(c.claims)
	if err != nil {
		return err
	}
	for _, e := range entries {
		digits, _, _ := strings.Cut(e.Name(), ".")
		if f, err := fence.ParseToken(digits); err != nil || e.Name() == own || f >= c.cfg.Fence {
			continue
		}
		if err := os.Remove(filepath.Join(c.claims, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// refusal is the error of a verdict that is neither Apply nor Done.
func (c *committer) refusal(v core.Verdict, found core.Row, commit sink.Commit) error {
	if v == core.Foreign {
		return fault.New(fault.SinkManifestExists, c.where, fmt.Sprintf("%s has life %s, this job %s", c.path, found.Life, c.cfg.Life))
	}
	who := core.Claimant{Where: c.where, Ledger: "folder " + c.path, Job: c.cfg.Job, Life: c.cfg.Life, Fence: c.cfg.Fence}
	return who.Refusal(v, found, commit.Ref, commit.Prev)
}

// Commit gives the epoch's files their names and publishes its manifest.
func (c *committer) Commit(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	found, err := c.ledger()
	if err != nil {
		return sink.Result{}, c.translate(err)
	}
	v := core.Decide(found, c.cfg.Life, c.cfg.Fence, commit.Ref, commit.Prev)
	if err := c.refusal(v, found, commit); err != nil {
		return sink.Result{}, err
	}
	if v == core.Done {
		return sink.Result{}, nil
	}
	m, staged, err := c.manifest(commit)
	if err != nil {
		return sink.Result{}, err
	}
	for i, f := range m.Files {
		if err := putInPlace(staged[i], filepath.Join(c.path, f.Path), f, c.where); err != nil {
			return sink.Result{}, c.translate(err)
		}
	}
	if err := c.syncAll(m); err != nil {
		return sink.Result{}, c.translate(err)
	}
	if err := ctx.Err(); err != nil {
		return sink.Result{}, context.Cause(ctx)
	}
	applied, err := c.publish(m)
	if err != nil {
		return sink.Result{}, c.translate(err)
	}
	c.sweep(ctx, staged, commit.Ref.Epoch)
	if !applied {
		return sink.Result{}, nil
	}
	return sink.Result{Applied: true, Rows: m.Rows}, nil
}

// manifest describes the commit and lists the staged names of its files, in the order of Files.
func (c *committer) manifest(commit sink.Commit) (Manifest, []string, error) {
	m := Manifest{
		Version: manifestVersion, Job: c.cfg.Job, Sink: c.cfg.Sink.Name, Life: c.cfg.Life, Fence: c.cfg.Fence,
		Ref: commit.Ref, Prev: commit.Prev, At: time.Now().UTC(), Positions: commit.Positions,
	}
	var staged []string
	count := make(map[string]int)
	for _, s := range commit.Staged {
		var d described
		if err := json.Unmarshal(s.Data, &d); err != nil {
			return Manifest{}, nil, fmt.Errorf("epoch %s: read description of a staged file: %w", commit.Ref.Epoch, err)
		}
		dir := tableDir(c.path, d.Table)
		base := fmt.Sprintf("e%s-%d", commit.Ref.Epoch, s.Subtask.Index)
		n := count[dir+"/"+base]
		count[dir+"/"+base]++
		if n > 0 {
			base += fmt.Sprintf("-%d", n)
		}
		name := filepath.Join(filepath.Base(dir), base+"."+string(c.format))
		m.Files = append(m.Files, File{Table: d.Table, Path: filepath.ToSlash(name), Rows: d.Rows, Bytes: d.Bytes})
		m.Rows += d.Rows
		staged = append(staged, filepath.Join(dir, d.Name))
	}
	return m, staged, nil
}

// putInPlace links a staged file to its final name. A final name that is taken although no manifest names it was left by a
// commit that did not get far enough.
func putInPlace(staged, final string, f File, where string) error {
	info, err := os.Stat(staged)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.SinkStageLost, where+", table "+string(f.Table), filepath.Base(staged)+" is not in "+filepath.Dir(staged))
	}
	if err != nil {
		return err
	}
	if info.Size() != f.Bytes {
		return fault.New(fault.SinkStageLost, where+", table "+string(f.Table),
			fmt.Sprintf("%s has %d bytes, %d were staged", filepath.Base(staged), info.Size(), f.Bytes))
	}
	err = os.Link(staged, final)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, err := os.Stat(final)
	if err != nil || os.SameFile(info, there) {
		return err
	}
	if err := os.Remove(final); err != nil {
		return err
	}
	return os.Link(staged, final)
}

// syncAll makes the final names safe.
func (c *committer) syncAll(m Manifest) error {
	dirs := make(map[string]bool)
	for _, f := range m.Files {
		dirs[filepath.Dir(filepath.Join(c.path, f.Path))] = true
	}
	for dir := range dirs {
		if err := durable.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// publish is the commit point. applied is false when another committer of this epoch was faster.
func (c *committer) publish(m Manifest) (applied bool, err error) {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return false, fmt.Errorf("encode manifest of epoch %s: %w", m.Epoch, err)
	}
	name := manifestName(c.manifests, m.Epoch)
	err = createOnly(name, append(data, '\n'), c.unique("manifest"))
	if err == nil {
		c.newest = &m
		return true, nil
	}
	c.newest = nil
	if !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	theirs, err := readManifest(name)
	if err != nil {
		return false, err
	}
	found := core.Row{Life: theirs.Life, Ref: theirs.Ref, Fence: c.cfg.Fence}
	return false, c.refusal(core.Decide(found, c.cfg.Life, c.cfg.Fence, m.Ref, m.Prev), found, sink.Commit{Ref: m.Ref, Prev: m.Prev})
}

// sweep removes staged names that no commit can need any more: those of this commit, and once in an attempt all whose
// epoch is not above it. What cannot be removed now is removed by a later attempt.
func (c *committer) sweep(ctx context.Context, staged []string, committed epoch.ID) {
	remove := func(name string) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.cfg.Logger.WarnContext(ctx, "staged file not removed", slog.String("error", err.Error()))
		}
	}
	for _, name := range staged {
		remove(name)
	}
	if c.swept {
		return
	}
	c.swept = true
	left, err := filepath.Glob(filepath.Join(globEscape(c.path), "*", stagePrefix+"*"+tmpSuffix))
	if err != nil {
		return
	}
	for _, name := range left {
		if e, ok := stagedEpoch(filepath.Base(name)); ok && epoch.ID(e) <= committed {
			remove(name)
		}
	}
}

// Close does nothing: no lock is held.
func (c *committer) Close() error { return nil }
