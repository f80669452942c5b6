package files

import (
	"context"

	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

type Connector struct{}

func (Connector) Level(spec.Sink) sink.Level { return sink.Transactional }
func (Connector) OpenWriter(context.Context, sink.Config) (sink.Writer, error)       { return nil, nil }
func (Connector) OpenCommitter(context.Context, sink.Config) (sink.Committer, error) { return nil, nil }
