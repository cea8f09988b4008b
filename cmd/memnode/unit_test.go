package main

import (
	"encoding/xml"
	"errors"
	"io"
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
	tool := systemdAnalyze(t)
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

func systemdAnalyze(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (Debian, Ubuntu: apt-get install systemd); what the unit starts was checked all the same")
	}
	return tool
}

// printed runs the beginning of the commands of connect.md that write a file, up to the end of
// that file, and returns it. The memnode that they find is program.
func printed(t *testing.T, file, program string) (path, text string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/connect.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```sh\n(mkdir [^`]*?cat > ~/([^`\n]*/" + regexp.QuoteMeta(file) + ") <<EOF\n[^`]*?\nEOF\n)").FindStringSubmatch(string(b))
	if m == nil {
		t.Fatalf("connect.md writes no %s", file)
	}
	home, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "memnode")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", m[1])
	cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path = filepath.Join(home, m[2])
	if b, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), filepath.Join(bin, "memnode")) {
		t.Errorf("it starts no memnode:\n%s", b)
	}
	return path, string(b)
}

// The unit for one user that connect.md prints, as systemd sees it.
func TestSystemdTakesTheUnitOfAUser(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path, text := printed(t, "memnode.service", self)
	for _, line := range []string{"Restart=on-failure", "RestartPreventExitStatus=2 7", "WantedBy=default.target"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	tool := systemdAnalyze(t)
	cmd := exec.CommandContext(t.Context(), tool, "verify", "--user", "--man=no", path)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "memnode.service:") {
		t.Errorf("%v: %s", err, out)
	}
}

// The file for launchd that connect.md prints is a property list with the keys that it knows.
func TestLaunchdFindsAPropertyList(t *testing.T) {
	_, text := printed(t, "mneme.memnode.plist", "/bin/sh")
	var keys []string
	for dec, in := xml.NewDecoder(strings.NewReader(text)), ""; ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		switch is := token.(type) {
		case xml.StartElement:
			in = is.Name.Local
		case xml.EndElement:
			in = ""
		case xml.CharData:
			if in == "key" {
				keys = append(keys, string(is))
			}
		}
	}
	if want := "Label ProgramArguments RunAtLoad KeepAlive SuccessfulExit StandardErrorPath"; strings.Join(keys, " ") != want {
		t.Errorf("keys are %q, want %s", keys, want)
	}
}
