package app

import (
	"runtime/debug"
	"strings"
)

// version is set by the linker: -ldflags "-X weir.dev/weir/pkg/app.version=1.2.3".
var version string

// Version returns the version of the program: what the linker was told, else the module's when it was installed as a
// module, else the commit.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return strings.TrimPrefix(v, "v")
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision[:min(len(revision), 12)] + dirty
}
