package epoch

import (
	"bytes"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/plan"
)

// Bytes is the canonical JSON of the manifest: one line, keys of maps in order. Its digest is the manifest's name.
func (m *Manifest) Bytes() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("encode manifest of epoch %d: %w", m.Epoch, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Digest is the lower-case hex SHA-256 of a manifest's bytes as they are stored.
func Digest(manifest []byte) string { return plan.Digest(manifest) }

// Decode reads stored bytes and checks them against the reference that names them. A newer version is refused.
func Decode(stored []byte, want Ref) (*Manifest, error) {
	if got := Digest(stored); got != want.Digest {
		return nil, fmt.Errorf("manifest of epoch %d: digest is %s, want %s", want.Epoch, got, want.Digest)
	}
	var m Manifest
	if err := json.Unmarshal(stored, &m); err != nil {
		return nil, fmt.Errorf("decode manifest of epoch %d: %w", want.Epoch, err)
	}
	if m.Version < 1 || m.Version > ManifestVersion {
		return nil, fmt.Errorf("manifest of epoch %d: version %d, this build reads up to %d", want.Epoch, m.Version, ManifestVersion)
	}
	if m.Epoch != want.Epoch {
		return nil, fmt.Errorf("manifest says epoch %d, want %d", m.Epoch, want.Epoch)
	}
	return &m, nil
}
