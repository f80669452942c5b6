package config

import "testing"

func TestRoughSizes(t *testing.T) {
	t.Parallel()
	for n, want := range map[Bytes]string{
		0: "0 bytes", 1023: "1023 bytes", 1536: "1.5 KiB", 1<<20 - 1: "1024.0 KiB", 12 << 30: "12.0 GiB", 3 << 40: "3072.0 GiB",
	} {
		if got := n.Rough(); got != want {
			t.Errorf("%d is %q, want %q", int64(n), got, want)
		}
	}
}
