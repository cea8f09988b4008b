package main

import "strings"

// allowance says that tests of a package may be skipped for a reason. A test that
// is skipped otherwise fails the run: nobody would notice that it does not run.
type allowance struct{ pkg, reason, why string }

// allowed lists the skips that may happen; pkg and reason are beginnings. To add one
// is to say that nothing is lost while its tests do not run.
var allowed = []allowance{
	{"mneme/", "no test data", "quality is measured on sets that are not in the repository"},
	{"mneme/", "no data", "the same"},
	{"mneme/bench/internal/judged", "", "the same: its only skip is that there are no sets"},
	{"mneme/test/e2e", "needs leave to mount", "a read-only disk is mounted by root only"},
	{"mneme/test/e2e", "mounts are tried on Linux only", "mounting is done in one way"},
	{"mneme/test/e2e", "the runbooks are for a shell of Unix", "they are walked elsewhere"},
	{"mneme/", "short", "asked for with -short, which make test does not"},
	{"mneme/internal/index/vector", "the race detector allocates", "what is counted is not the product's; go test without -race counts it"},
	{"mneme/internal/index/vector", "engine coder: ", "the engine coder does not build on Windows"},
	{"mneme/internal/", "Windows has no such modes", "there are none to check"},
	{"mneme/internal/agentsync", "node is not installed", "in CI it is, or the test fails"},
	{"mneme/internal/auth", "file modes are not those of Unix", "there are none to check"},
	{"mneme/internal/hooks", "runs as the child of TestKilledMidway", "it is the process that that test kills"},
	{"mneme/internal/lint", "the files of the project are known from git", "the sources may come without it"},
	{"mneme/internal/raftfsm", "no hard links here", "not every file system has them"},
	{"mneme/cmd/memnode", "systemd-analyze is not installed", "the unit's program, flags and exit codes are checked without it"},
	{"mneme/cmd/memctl/verbs", "no time zones here", "the system may lack them"},
	{"mneme/test/cluster", "SKIPPED: network namespaces", "make robustness PACKETS=1 asks for them, as root on Linux"},
	{"mneme/test/cluster", "make upgrade FROM=COMMIT runs it", "it builds another commit, which a clone need not have"},
	{"mneme/test/k8s/apply", "no API server", "make test-k8s builds one, which takes minutes"},
	{"mneme/test/observability", "promtool is not installed", "the library that promtool is made of reads the rules, too"},
	{"mneme/test/k8s/node", "no node", "make test-k8s-node runs one, as root on Linux"},
	{"mneme/test/sdk", "python3 is not installed", "in CI it is, or the test fails"},
	{"mneme/test/sdk", "node is not installed", "the same"},
	{"mneme/test/sdk", "tsc is not installed", "the same; what is checked with it does not run in it"},
	{"mneme/test/sdk", "mypy is not installed", "the annotations are resolved without it, too"},
	{"mneme/bench/", "builds and runs memnode", "-short"},
	{"mneme/bench/", "takes some seconds", "-short"},
	{"mneme/bench/search", "", "its peers in C++ are not everywhere"},
	{"mneme/bench/internal/proc", "no SIGTERM on Windows", "there is none"},
}

func (s skip) allowed() bool {
	for _, a := range allowed {
		if strings.HasPrefix(s.pkg+"/", strings.TrimSuffix(a.pkg, "/")+"/") && strings.HasPrefix(s.reason, a.reason) {
			return true
		}
	}
	return false
}
