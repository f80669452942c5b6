package spec

import "weir.dev/weir/pkg/config"

// BlackholeSink counts rows and drops them. It serves benchmarks and first tries.
type BlackholeSink struct{}

func (c *BlackholeSink) secrets() []config.Secret                { return nil }
func (c *BlackholeSink) check(_ *config.Decoder, _ *config.Node) {}
