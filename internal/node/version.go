package node

import (
	"runtime"
	"runtime/debug"

	"mneme/memory"
)

// BuildVersion is the version of the program that runs, as its build says.
func BuildVersion() memory.VersionInfo {
	v := memory.VersionInfo{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}
