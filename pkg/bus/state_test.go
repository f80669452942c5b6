package bus_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/meshtest"
)

func object(f fence.Token, n int) string { return bus.StateSubject("life1", f, 9, writer, n) }

func noise(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b)
	return b
}

func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]meshtest.ServerOptions{
		"8 MiB payloads":         {},
		"1 MiB payloads":         {MaxPayload: 1 << 20},
		"fsync after each write": {SyncAlways: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, meshtest.StartServer(t, opts))
			if err := c.EnsureBase(t.Context(), bus.BaseConfig{LeaseTTL: 3e9}); err != nil {
				t.Fatal(err)
			}
			for n, size := range []int{0, 1, 4 << 20, 4<<20 + 1, 11 << 20} {
				data := noise(size)
				ref, err := c.PutState(t.Context(), object(1, n), data)
				if err != nil {
					t.Fatal(err)
				}
				if ref.Size != int64(size) || ref.Subject != object(1, n) {
					t.Fatalf("ref %+v", ref)
				}
				got, err := c.GetState(t.Context(), ref)
				if err != nil || !bytes.Equal(got, data) {
					t.Fatalf("%d bytes: got %d back, %v", size, len(got), err)
				}
			}
		})
	}
}

func TestStateIsChecked(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	ref, err := c.PutState(t.Context(), object(1, 0), []byte("right"))
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string]bus.StateRef{
		"digest":    {Subject: ref.Subject, Size: ref.Size, Digest: ref.Digest[:63] + "0"},
		"too short": {Subject: ref.Subject, Size: ref.Size + 1, Digest: ref.Digest},
		"too long":  {Subject: ref.Subject, Size: ref.Size - 1, Digest: ref.Digest},
	} {
		if _, err := c.GetState(t.Context(), wrong); !errors.Is(err, bus.ErrDamaged) && !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("%s: %v, want ErrDamaged or ErrNotFound", name, err)
		}
	}
	if _, err := c.GetState(t.Context(), bus.StateRef{Subject: object(2, 0), Size: 1}); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("missing object: %v, want ErrNotFound", err)
	}
	// Written again, as after an unknown result: the same reference, still one object.
	again, err := c.PutState(t.Context(), object(1, 0), []byte("right"))
	if err != nil || again != ref {
		t.Fatalf("put again: %+v, %v", again, err)
	}
}

func TestStateGarbage(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	for _, f := range []fence.Token{1, 11} {
		for n := range 2 {
			if _, err := c.PutState(t.Context(), object(f, n), noise(5<<20)); err != nil {
				t.Fatal(err)
			}
		}
	}
	purged, err := c.PurgeState(t.Context(), bus.StateAttemptPrefix("life1", 1))
	if err != nil || purged != 4 {
		t.Fatalf("purged %d parts, %v; want 4", purged, err)
	}
	got, err := c.ListState(t.Context(), bus.StateLifePrefix("life1"))
	if want := []string{object(11, 0), object(11, 1)}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("left %v, %v; want %v", got, err, want)
	}
}
