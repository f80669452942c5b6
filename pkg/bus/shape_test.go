package bus

import (
	"testing"
	"time"
)

// Who sets nothing gets what fits the servers found; who sets something gets it.
func TestBaseFollowsTheServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		cfg     BaseConfig
		cluster bool
		want    BaseConfig
	}{
		{"one server", BaseConfig{}, false, BaseConfig{Replicas: 1, LeaseTTL: 3 * time.Second}},
		{"a cluster", BaseConfig{}, true, BaseConfig{Replicas: 3, LeaseTTL: 12 * time.Second}},
		{"as told", BaseConfig{Replicas: 5, LeaseTTL: time.Minute}, true, BaseConfig{Replicas: 5, LeaseTTL: time.Minute}},
		{"half told", BaseConfig{Replicas: 1, MemoryState: true}, true, BaseConfig{Replicas: 1, LeaseTTL: 12 * time.Second, MemoryState: true}},
	} {
		if got := tt.cfg.on(tt.cluster); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
