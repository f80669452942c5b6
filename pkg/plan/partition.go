package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// KeyGroups is the number of key groups of every job, for its whole life.
const KeyGroups = 128

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

// OwnerOf returns which of n subtasks owns the key group (I2): contiguous ranges, the first groups%n subtasks own one
// more. It depends on nothing else.
func OwnerOf(group, groups, n int) int {
	size, longer := groups/n, groups%n
	if edge := longer * (size + 1); group >= edge {
		return longer + (group-edge)/size
	}
	return group / (size + 1)
}

// GroupsOf returns the range of key groups, from inclusive and to exclusive, that subtask i of n owns.
func GroupsOf(i, groups, n int) (from, to int) {
	size, longer := groups/n, groups%n
	from = i*size + min(i, longer)
	to = from + size
	if i < longer {
		to++
	}
	return from, to
}
