// Command coordinator runs one coordinator of a mesh.
package main

import (
	"weir.dev/weir/pkg/app"
	"weir.dev/weir/services/coordinator"
)

func main() { app.Main("coordinator", coordinator.Default(), coordinator.Run) }
