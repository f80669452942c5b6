package rows

import "bytes"

// keyTable numbers distinct keys from 0 in order of first sight. Open addressing over the key hash; a hit is verified
// against the key's bytes, so two keys with one hash stay two keys.
type keyTable struct {
	slots []uint32 // number+1, 0 when free; the length is a power of two
	keys  []keySpan
	arena []byte
}

type keySpan struct {
	hash     uint64
	from, to int
}

func (t *keyTable) place(hash uint64, key []byte) (id int, found bool) {
	if 4*(len(t.keys)+1) > 3*len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		n := t.slots[at]
		if n == 0 {
			t.keys = append(t.keys, keySpan{hash, len(t.arena), len(t.arena) + len(key)})
			t.arena = append(t.arena, key...)
			t.slots[at] = uint32(len(t.keys))
			return len(t.keys) - 1, false
		}
		if k := &t.keys[n-1]; k.hash == hash && bytes.Equal(t.arena[k.from:k.to], key) {
			return int(n - 1), true
		}
	}
}

func (t *keyTable) grow() {
	t.slots = make([]uint32, max(2*len(t.slots), 1024))
	mask := uint64(len(t.slots) - 1)
	for i, k := range t.keys {
		at := k.hash & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(i + 1)
	}
}
