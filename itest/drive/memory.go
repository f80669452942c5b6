package drive

import (
	"context"
	"fmt"
	"sync"

	"weir.dev/weir/pkg/epoch"
)

// Memory is a store of pieces. The zero value is empty.
type Memory struct {
	mu  sync.Mutex
	all map[string][]byte
}

// Put is of sink.Store.
func (m *Memory) Put(_ context.Context, data []byte) (epoch.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[string][]byte)
	}
	name := fmt.Sprint("piece ", len(m.all))
	m.all[name] = data
	return epoch.Object{Subject: name, Size: int64(len(data))}, nil
}

// Get is of sink.Store.
func (m *Memory) Get(_ context.Context, o epoch.Object) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[o.Subject], nil
}
