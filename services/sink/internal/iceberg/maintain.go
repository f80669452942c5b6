package iceberg

import (
	"context"

	"weir.dev/weir/pkg/sink"
)

type upkeep struct{}

func (u *upkeep) committed(s *state) {}

func (c *committer) maintain(ctx context.Context, commit sink.Commit) {}
