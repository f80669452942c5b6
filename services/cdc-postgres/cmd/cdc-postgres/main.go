// Command cdc-postgres hosts the PostgreSQL sources of a mesh.
package main

import (
	"weir.dev/weir/pkg/app"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
)

func main() { app.Main("cdc-postgres", cdcpostgres.Default(), cdcpostgres.Run) }
