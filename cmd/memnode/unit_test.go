package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mneme/internal/node"
)

const unitFile = "../../deploy/systemd/memnode.service"

// The unit for systemd starts memnode with options that there are, and starts it again unless
// that changes nothing.
func TestUnitForSystemd(t *testing.T) {
	b, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	says := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(string(b), -1) {
		says[m[1]] = m[2]
	}
	args, found := strings.CutPrefix(says["ExecStart"], "/usr/local/bin/memnode ")
	if !found {
		t.Fatalf("ExecStart is %q", says["ExecStart"])
	}
	w := stopsWhenReady(t, newFake())
	file := w.file(t, "mneme.yaml", "data-dir: "+filepath.Join(t.TempDir(), "lib")+"\n")
	row := w.config(t, strings.Fields(strings.Replace(args, "/etc/mneme/config.yaml", file, 1))...)["data-dir"]
	if origin := (origin{row.Source, row.Detail}).String(); !strings.HasPrefix(origin, "file") {
		t.Errorf("data-dir is %v, from %s", row.Value, origin)
	}
	never := map[string]bool{}
	for _, code := range strings.Fields(says["RestartPreventExitStatus"]) {
		never[code] = true
	}
	for kind, want := range map[string]bool{node.StartUsage: true, node.StartDamaged: true, node.StartLostKey: true, node.StartNewer: true,
		node.StartAddress: false, node.StartUnreachable: false, node.StartInUse: false, node.StartOther: false} {
		if code := strconv.Itoa(exitCode(kind)); never[code] != want {
			t.Errorf("%s ends with %s, after which a start is prevented: %v", kind, code, never[code])
		}
	}
}

// systemd itself knows each line of the unit.
func TestSystemdTakesTheUnit(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (Debian, Ubuntu: apt-get install systemd); what the unit starts was checked all the same")
	}
	b, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable() // memnode may not be installed
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "memnode.service")
	if err := os.WriteFile(file, []byte(strings.Replace(string(b), "/usr/local/bin/memnode", self, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", file).CombinedOutput(); err != nil || strings.Contains(string(out), "memnode.service:") {
		t.Errorf("%v: %s", err, out)
	}
}
