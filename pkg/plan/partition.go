package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"weir.dev/weir/pkg/rows"
)

// KeyGroups is the number of key groups of every job, for its whole life. Which subtask owns a group is decided where rows are
// split, and nowhere else (I2).
const KeyGroups = rows.KeyGroups

// MaxParallelism bounds every vertex: one key group per subtask at least.
const MaxParallelism = KeyGroups

// NewPartitioned fixes the topology of a model.
func NewPartitioned(m Model) Partitioned { return Partitioned{Model: m, KeyGroups: KeyGroups} }

// Fingerprint is the lower-case hex SHA-256 of the canonical JSON of the partitioned plan. Two plans with the same
// fingerprint have the same subtasks, channels and key ranges.
func (p *Partitioned) Fingerprint() string {
	return Digest(canonical(p))
}

// Digest is the lower-case hex SHA-256 of b: the form of all digests in plans, manifests and ledgers.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonical is JSON in one line, keys of maps in order, without the escapes meant for web pages. The types of this
// package hold nothing that JSON cannot write.
func canonical(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("plan: canonical form: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
