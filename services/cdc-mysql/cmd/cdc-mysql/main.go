// Command cdc-mysql hosts the MySQL and MariaDB sources of a mesh.
package main

import (
	"weir.dev/weir/pkg/app"
	cdcmysql "weir.dev/weir/services/cdc-mysql"
)

func main() { app.Main("cdc-mysql", cdcmysql.Default(), cdcmysql.Run) }
