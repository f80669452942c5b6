// Command sink hosts the writers and committers of a mesh.
package main

import (
	"weir.dev/weir/pkg/app"
	"weir.dev/weir/services/sink"
)

func main() { app.Main("sink", sink.Default(), sink.Run) }
