package report

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine names the machine in one line: cores, processor, system, Go.
func Machine() string {
	return fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.GOMAXPROCS(0), processor(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// Commit is the one that is checked out where the program runs, and whether files differ from
// it; "" where Git does not tell.
func Commit() string {
	head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	commit := strings.TrimSpace(string(head))
	if changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(changed) > 0 {
		commit += " with changes"
	}
	return commit
}

// processor is the model that Linux names, or "unnamed processor".
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unnamed processor"
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for in.Scan() {
		if name := modelName(in.Text()); name != "" {
			return name
		}
	}
	return "unnamed processor"
}

func modelName(line string) string {
	key, value, ok := strings.Cut(line, ":")
	if !ok || strings.TrimSpace(key) != "model name" {
		return ""
	}
	return strings.Join(strings.Fields(value), " ")
}
