package rows

import "github.com/zeebo/xxh3"

// KeyGroups is the number of key groups of every job. It is part of stored state and never changes.
const KeyGroups = 128

// HashKey hashes canonical key bytes.
func HashKey(key []byte) uint64 { return xxh3.Hash(key) }

// GroupOf is the key group of a hash: its top seven bits, which leaves the low bits even for hash tables downstream.
func GroupOf(hash uint64) int { return int(hash >> 57) }

// GroupRange is the range [from, to) of key groups that subtask i of n owns. Ranges are contiguous;
// the first KeyGroups mod n subtasks own one group more. Beyond KeyGroups subtasks own nothing.
func GroupRange(i, n int) (from, to int) {
	each, more := KeyGroups/n, KeyGroups%n
	from = i*each + min(i, more)
	to = from + each
	if i < more {
		to++
	}
	return from, to
}

// Owner is the subtask of n that owns group: the inverse of GroupRange.
func Owner(group, n int) int {
	each, more := KeyGroups/n, KeyGroups%n
	if wide := more * (each + 1); group >= wide {
		return more + (group-wide)/each
	}
	return group / (each + 1)
}
