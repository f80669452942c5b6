package source

import (
	"context"
	"fmt"
)

// Hold takes a name that one half at a time may use in the whole mesh, such as an id by which an outside system tells its clients
// apart. The context that it returns ends with ctx, with release, or when the name is lost; whatever uses the name ends with it.
// [*HeldError] says who has the name instead.
type Hold func(ctx context.Context, name string) (held context.Context, release func(), err error)

// HeldError says that somebody else has a name.
type HeldError struct {
	Name string
	// By is who has it; zero when that is not known.
	By Identity
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by %s of job %s", e.Name, e.By.Subtask, e.By.Job)
}
