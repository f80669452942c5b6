package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/core"
)

const manifestVersion = 1

// Manifest is one committed epoch: the file `_manifest/<epoch>.json`.
type Manifest struct {
	Version int         `json:"version"`
	Job     string      `json:"job"`
	Sink    string      `json:"sink"`
	Life    string      `json:"life"`
	Fence   fence.Token `json:"fence"`
	epoch.Ref
	Prev      epoch.Ref                    `json:"prev,omitzero"`
	At        time.Time                    `json:"at"`
	Positions map[string]position.Position `json:"positions,omitempty"`
	Rows      uint64                       `json:"rows"`
	Files     []File                       `json:"files"`
}

// File is a data file of a manifest.
type File struct {
	Table rows.TableID `json:"table"`
	// Path is relative to the sink's path.
	Path  string `json:"path"`
	Rows  uint64 `json:"rows"`
	Bytes int64  `json:"bytes"`
}

func manifestName(dir string, e epoch.ID) string { return filepath.Join(dir, e.String()+".json") }

// epochsOf lists the epochs that have a manifest, oldest first.
func epochsOf(dir string) ([]epoch.ID, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []epoch.ID
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		if id, err := epoch.ParseID(name); err == nil {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all, err
}

func readManifest(name string) (Manifest, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("read %s: %w", name, err)
	}
	if m.Version != manifestVersion {
		return Manifest{}, fmt.Errorf("read %s: version %d, this release reads %d", name, m.Version, manifestVersion)
	}
	return m, nil
}

// newestManifest reads the end of the chain; the zero Manifest when there is none.
func newestManifest(dir string) (*Manifest, error) {
	epochs, err := epochsOf(dir)
	if err != nil || len(epochs) == 0 {
		return &Manifest{}, err
	}
	m, err := readManifest(manifestName(dir, epochs[len(epochs)-1]))
	return &m, err
}

// Manifests reads the committed epochs of a sink's path, oldest first: all that a reader may trust.
func Manifests(path string) ([]Manifest, error) {
	dir := filepath.Join(path, manifestDir)
	epochs, err := epochsOf(dir)
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	all := make([]Manifest, len(epochs))
	for i, id := range epochs {
		if all[i], err = readManifest(manifestName(dir, id)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// ReadLedger reads the ledger that the manifests of a path are.
func ReadLedger(path string) (core.Ledger, error) {
	all, err := Manifests(path)
	if err != nil || len(all) == 0 {
		return core.Ledger{}, err
	}
	newest := all[len(all)-1]
	l := core.Ledger{Life: newest.Life, Fence: newest.Fence, Ref: newest.Ref, Positions: newest.Positions}
	for _, m := range all {
		l.Log = append(l.Log, core.Entry{Ref: m.Ref, Prev: m.Prev, Fence: m.Fence, Rows: m.Rows, At: m.At})
	}
	return l, nil
}
