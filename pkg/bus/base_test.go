package bus_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/meshtest"
)

// What Assets says is what EnsureBase makes, also when several do it at once and again.
func TestBaseIsWhatAssetsSay(t *testing.T) {
	t.Parallel()
	s := meshtest.StartServer(t, meshtest.ServerOptions{})
	c := connect(t, s)
	cfg := bus.BaseConfig{LeaseTTL: 3 * time.Second}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := c.EnsureBase(t.Context(), cfg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cfg.LeaseTTL = 12 * time.Second // another version of Weir changes a setting
	if err := c.EnsureBase(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	js, err := s.NATS().Jsz(&server.JSzOptions{Accounts: true, Streams: true, Config: true})
	if err != nil || len(js.AccountDetails) != 1 {
		t.Fatalf("streams of the server: %+v, %v", js, err)
	}
	streams := make(map[string]*server.StreamConfig)
	for _, st := range js.AccountDetails[0].Streams {
		streams[st.Name] = st.Config
	}
	made := 0
	for _, a := range bus.Assets() {
		if a.Name == "" || a.Purpose == "" || len(a.Writers) == 0 || len(a.Readers) == 0 {
			t.Errorf("asset %q is not described", a.Name)
		}
		if strings.Contains(a.Name, "<") {
			continue // made per job
		}
		name := a.Name
		if a.Kind == "bucket" {
			name = "KV_" + name
		}
		sc, ok := streams[name]
		if !ok {
			t.Errorf("%s was not made", name)
			continue
		}
		made++
		if got := strings.ToLower(sc.Storage.String()); got != a.Storage {
			t.Errorf("%s is stored in %s, Assets say %s", name, got, a.Storage)
		}
		if sc.Description == "" || sc.Metadata["weir"] == "" {
			t.Errorf("%s does not explain itself", name)
		}
	}
	if all := len(streams); made != all {
		t.Errorf("%d streams exist, Assets name %d of them", all, made)
	}
}

func TestBaseRefusesAnotherShape(t *testing.T) {
	t.Parallel()
	_, c := mesh(t) // state in memory
	err := c.EnsureBase(t.Context(), bus.BaseConfig{LeaseTTL: 3 * time.Second})
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.BusStreamShape || !errors.Is(err, bus.ErrShape) {
		t.Fatalf("ensure base: %v, want %s", err, fault.BusStreamShape)
	}
}
