package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/registry"
)

// Belongings are what the records say of whose a stream or a state object can be.
type Belongings struct {
	// Heads are those of all jobs, also of deleted ones, by name.
	Heads []job.Head
	// Objects counts the state objects by life.
	Objects map[string]int
}

// ReadBelongings reads them; bus.ErrNotFound when there are no records. Unlike [Open] it does not wait for a coordinator.
func ReadBelongings(ctx context.Context, conn *bus.Conn) (Belongings, error) {
	reg, err := registry.Open(ctx, conn, 0)
	if err != nil {
		return Belongings{}, err
	}
	views, err := reg.Heads(ctx)
	if err != nil {
		return Belongings{}, fmt.Errorf("read the heads: %w", err)
	}
	b := Belongings{Objects: make(map[string]int)}
	for _, v := range slices.SortedFunc(maps.Values(views), func(a, b job.View) int { return strings.Compare(a.Head.Job, b.Head.Job) }) {
		b.Heads = append(b.Heads, *v.Head)
	}
	objects, err := conn.ListState(ctx, bus.StatePrefix)
	if err != nil {
		return Belongings{}, fmt.Errorf("list state objects: %w", err)
	}
	for _, o := range objects {
		if life, _, _, _, _, err := bus.ParseStateSubject(o); err == nil {
			b.Objects[life]++
		}
	}
	return b, nil
}
