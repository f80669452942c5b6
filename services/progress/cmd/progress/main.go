// Command progress runs one progress service of a mesh.
package main

import (
	"weir.dev/weir/pkg/app"
	"weir.dev/weir/services/progress"
)

func main() { app.Main("progress", progress.Default(), progress.Run) }
